"""What happens to labs and to what they start."""

from dataclasses import dataclass
from enum import Enum


class Happening(Enum):
    """What has happened."""

    SPAWNED = 0
    READY = 1
    FAILED = 2
    STOPPED = 3
    DENIED = 4


@dataclass
class Event:
    """Something that has happened to a lab; `host.child` is the kernel or Dask pool that it is about."""

    what: Happening
    at_ms: int
    """In milliseconds since the Unix epoch."""
    username: str
    server: str = ""
    """`""` is the default server."""
    operation: str | None = None
    """The operation, as in the lab's history."""
    image: str | None = None
    took_ms: int | None = None
    """How long the operation took, in milliseconds."""
    reason: str | None = None
    """One word for why it failed, or the rule by which it was denied."""
    message: str | None = None
    """Why it failed or was denied, as the user saw it."""
