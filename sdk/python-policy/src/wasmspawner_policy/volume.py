"""Volumes of the lab's pod.

Names and paths of storage may contain the service's template fields, such as `{username}`. Take these texts from the
configuration, and never build them from text that a user typed.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Self


class AccessMode(Enum):
    """Who may mount a claim at the same time."""

    READ_WRITE_ONCE = 0
    READ_ONLY_MANY = 1
    READ_WRITE_MANY = 2
    READ_WRITE_ONCE_POD = 3


class ClaimReclaim(Enum):
    """What happens to a claim when JupyterHub deletes the server that used it. Stopping a lab never deletes a claim."""

    RETAIN = 0
    DELETE = 1
    """The claim is deleted with the last server that used it."""


@dataclass
class ClaimTemplate:
    """A claim that the service creates if it does not exist. An existing claim is not changed."""

    storage_bytes: int
    storage_class: str | None = None
    access_modes: list[AccessMode] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    selector: dict[str, str] = field(default_factory=dict)
    """Labels that the volume behind the claim must have."""
    reclaim: ClaimReclaim = ClaimReclaim.RETAIN


class _Source:
    @property
    def value(self) -> Self:
        """This source itself, which the service reads."""
        return self


@dataclass
class Nfs(_Source):
    """An exported directory of an NFS server."""

    server: str
    path: str
    read_only: bool = False


@dataclass
class Claim(_Source):
    """A claim, which has to exist if `create` is absent."""

    claim_name: str
    read_only: bool = False
    create: ClaimTemplate | None = None


@dataclass
class ConfigMap(_Source):
    """A ConfigMap in the lab's namespace."""

    name: str
    optional: bool = False
    items: dict[str, str] = field(default_factory=dict)
    """Paths by key; all keys if empty."""
    mode: int | None = None
    """The files' permission bits, such as `0o440`."""


@dataclass
class Secret(ConfigMap):
    """A Secret in the lab's namespace. Needs the grant `secrets: [name]`."""


@dataclass
class EmptyDir(_Source):
    """A directory that lives as long as the pod, on the node's disk or in its memory."""

    size_limit_bytes: int | None = None
    memory: bool = False


@dataclass
class HostPath:
    """A path of the node. Needs the grant `host-path: [prefix]`."""

    value: str


@dataclass
class Volume:
    """A volume, which mounts name."""

    name: str
    source: Nfs | Claim | ConfigMap | Secret | EmptyDir | HostPath
