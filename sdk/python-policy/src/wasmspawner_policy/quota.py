"""Limits on the resources of a user: all their labs, and what the labs start, together."""

from dataclasses import dataclass, field


@dataclass
class Quota:
    """The limits. An absent limit does not limit."""

    cpu_millis: int | None = None
    """CPU in thousandths of a CPU."""
    memory_bytes: int | None = None
    storage_bytes: int | None = None
    pods: int | None = None
    labs: int | None = None
    """Labs at the same time, named servers included."""
    extended: dict[str, int] = field(default_factory=dict)
    """Extended resources, such as `nvidia.com/gpu`."""


@dataclass
class Usage:
    """What the user has at this moment."""

    labs: int = 0
