"""Labs in the pods of a workload: a `Deployment`, a `StatefulSet` or a `DaemonSet`."""

from dataclasses import dataclass, field
from enum import Enum


class WorkloadKind(Enum):
    """The kind of a workload."""

    DEPLOYMENT = 0
    STATEFUL_SET = 1
    DAEMON_SET = 2


@dataclass
class Container:
    """A container of the workload's pods."""

    name: str
    image: str


@dataclass
class WorkloadVolume:
    """A volume of the workload's pods."""

    name: str
    source: str
    """The kind of its source, as Kubernetes writes it: `configMap`, `secret`, `persistentVolumeClaim`."""


@dataclass
class Workload:
    """The workload, without the labs that are in it already."""

    kind: WorkloadKind
    namespace: str
    name: str
    containers: list[Container] = field(default_factory=list)
    volumes: list[WorkloadVolume] = field(default_factory=list)


@dataclass
class VolumeAccess:
    """A volume of the workload that the lab has, too. One that is made from a Secret needs the grant `secrets: [name]`, a
    path of the node the grant `host-path: [prefix]`."""

    volume: str
    """The name of the volume in the workload."""
    path: str
    """Where the lab has it: an absolute path."""
    sub_path: str | None = None
    read_only: bool = False


@dataclass
class Access:
    """The lab is allowed, and sees this of the workload's pods, beside the network, which it shares with their other
    containers."""

    volumes: list[VolumeAccess] = field(default_factory=list)
    environment_of: str | None = None
    """The container whose environment the lab has, too. The lab's own variables win. Values from Secrets need the grant
    `secrets: [name]`."""
