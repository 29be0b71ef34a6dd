"""Stands in for the host in native tests: what it would answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from .options import Options
from .user import User


@dataclass
class KnownImage:
    """An image of a repository, as the service knows it."""

    tag: str
    digest: str | None = None
    """The digest that the tag had when the service last looked, `sha256:...`, if it knows."""
    size_bytes: int | None = None
    """What a node needs for the image on its disk. Absent while no node has it."""
    nodes_with: int = 0
    """How many nodes on which labs can run have the image."""


class ChildKind(Enum):
    """What a lab can start."""

    KERNEL = 0
    DASK_POOL = 1


@dataclass
class ChildOfLab:
    """A kernel or a Dask pool."""

    kind: ChildKind
    name: str
    """The name of the kernel spec, or the name that its client has given to the pool."""
    workers: int = 0
    """How many workers the pool may have at the most; 0 for a kernel."""


@dataclass
class UseOfUser:
    """What a user has at one moment, of all labs together."""

    labs: int = 0
    """Labs that are running, starting or stopping; kernels and Dask pools likewise."""
    kernels: int = 0
    dask_pools: int = 0
    dask_workers: int = 0
    """How many workers these pools may have at the most, all together."""
    cpu_millis: int = 0
    """The limits of all pods together. What has no limit counts as 0."""
    memory_bytes: int = 0


@dataclass
class UseOfDays:
    """What was used in past days."""

    lab_seconds: int = 0
    """How long labs ran, from when they became ready until their stop began; two labs at the same time count twice."""
    kernel_seconds: int = 0
    """How long kernels ran, likewise."""
    dask_worker_seconds: int = 0
    """How long workers of Dask pools could run: a pool counts with all workers that it may have."""
    cpu_seconds: int = 0
    """The CPU limits of all that ran, times the seconds for which it ran. What has no limit counts as 0."""
    memory_gib_seconds: int = 0
    """The memory limits likewise, in GiB times seconds."""


@dataclass
class LabBlueprint:
    """The blueprints of a lab: the one that was chosen with all that it extends, and those of the platform."""

    chosen: str | None
    consists_of: list[str]
    """The names of all, in the order in which they are merged."""
    spec: str
    """What they say together, as JSON in the form of a blueprint's file."""


@dataclass
class Situation:
    """What the host tells a policy in a test: a lab of a user who has nothing else, unless something else is said."""

    now_millis: int = 0
    """The time in milliseconds since the Unix epoch."""
    random: bytes = b""
    """The random bytes, followed by zeros."""
    data: dict[str, Any] = field(default_factory=dict)
    """The site's data by name, as values of JSON."""
    images: dict[str, list[KnownImage]] = field(default_factory=dict)
    """The images by repository, newest first."""
    lab_nodes: int = 0
    child: ChildOfLab | None = None
    present_use: UseOfUser = field(default_factory=UseOfUser)
    past_use: dict[int, UseOfDays] = field(default_factory=dict)
    """What the user has used, by how many days ago; 0 is today."""
    blueprint: LabBlueprint | None = None
    last_options: Options = field(default_factory=dict)
    """The submission with which the server was last started."""
    lab_of: User | None = None
    """The user whose lab fills the fields of templates; without one, templates are only checked."""
    log: list[tuple[str, str]] = field(default_factory=list)
    """The lines that the policy has logged, each with the name of its level."""


current = Situation()


def past_use(days: int) -> UseOfDays:
    """What the user has used in so many days, the present one included."""
    past = [use for days_ago, use in current.past_use.items() if days_ago < min(max(days, 1), 30)]
    return UseOfDays(
        lab_seconds=sum(use.lab_seconds for use in past),
        kernel_seconds=sum(use.kernel_seconds for use in past),
        dask_worker_seconds=sum(use.dask_worker_seconds for use in past),
        cpu_seconds=sum(use.cpu_seconds for use in past),
        memory_gib_seconds=sum(use.memory_gib_seconds for use in past),
    )


@contextmanager
def changed(**values: Any) -> Iterator[Situation]:
    """Calls hooks in another situation than the current one, of which `values` replace fields."""
    global current
    before = current
    current = replace(before, **values)
    try:
        yield current
    finally:
        current = before


def expand(template: str) -> str:
    """Expands a template as the service does, except that names are not escaped and formats are refused."""
    user = current.lab_of
    expanded, rest = "", template
    while rest:
        before, brace, rest = _at_brace(rest)
        expanded += before
        if not brace:
            break
        if rest.startswith(brace):
            expanded, rest = expanded + brace, rest[1:]
            continue
        name, closed, rest = rest.partition("}")
        if brace == "}" or not closed:
            raise ValueError("unbalanced brace; for a brace itself write it twice")
        fields = _fields(user or User(""))
        if name not in fields:
            raise ValueError(f"unknown field {{{name}}}; there are {', '.join(sorted(fields))}")
        expanded += fields[name]
    return expanded if user else template


def _at_brace(text: str) -> tuple[str, str, str]:
    at = min((index for index in (text.find("{"), text.find("}")) if index >= 0), default=len(text))
    return text[:at], text[at : at + 1], text[at + 1 :]


def _fields(user: User) -> dict[str, str]:
    others = [str(group.gid) for group in user.groups if group.gid not in (None, user.gid)]
    fields = {
        "uid": str(user.uid or 0),
        "gid": str(user.gid or 0),
        "supplemental_gids": ",".join(others),
        "home": f"/home/{user.name}",
        "hubnamespace": "jhub",
        "namespace": f"ns-{user.name}",
        "pod_name": f"nb-{user.name}",
        "pvc_name": f"claim-{user.name}",
        "unescaped_username": user.name,
        "unescaped_servername": "",
    }
    for prefix in ("", "safe_", "escaped_"):
        fields |= {f"{prefix}username": user.name, f"{prefix}servername": "", f"{prefix}user_server": user.name}
    return fields
