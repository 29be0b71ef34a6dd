"""What the service says about a Dask pool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..json_answer import texts
from ..web_address import WebAddress

_NUMBERS = ("desired", "ready", "pods", "minimum", "maximum")


def _scaling(minimum: int, maximum: int, desired: int) -> str:
    return f"{minimum}-{maximum}" if minimum < maximum else str(desired)


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """A group of a pool's workers at one time."""

    name: str
    desired: int = 0
    ready: int = 0
    pods: int = 0
    minimum: int = 0
    maximum: int = 0

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "WorkerGroup":
        """The group in an object of the API. Raises an error for anything else."""
        return cls(str(answer["name"]), **{key: int(answer.get(key) or 0) for key in _NUMBERS})

    @property
    def scaling(self) -> str:
        """How many workers there are to be: "4", or "0-8"."""
        return _scaling(self.minimum, self.maximum, self.desired)


@dataclass(frozen=True, slots=True)
class PoolState:
    """A pool at one time. `ready` counts the workers that are connected to the scheduler, `pods` those that exist.

    `workers_message` says why workers are missing; `note` is what the service adds to a change of their number.
    """

    name: str
    status: str
    stage: str = ""
    reason: str = ""
    message: str = ""
    desired: int = 0
    ready: int = 0
    pods: int = 0
    minimum: int = 0
    maximum: int = 0
    workers_message: str = ""
    scheduler_address: str = ""
    dashboard_url: str = ""
    idle_timeout: int | None = None
    outlives_lab: bool = False
    note: str = ""
    certificate_digest: str = ""
    groups: tuple[WorkerGroup, ...] = ()

    @classmethod
    def of(cls, answer: Any) -> "PoolState":
        """The state in an object of the API. Raises an error for anything else."""
        workers: Mapping[str, Any] = answer.get("workers") or {}
        idle_timeout = answer.get("idle_timeout")
        if dashboard_url := answer.get("dashboard_url"):
            WebAddress.of_url(str(dashboard_url))  # raises `ValueError` if it is none
        return cls(
            name=str(answer["name"]),
            status=str(answer["status"]),
            **{key: int(workers.get(key) or 0) for key in _NUMBERS},
            groups=tuple(map(WorkerGroup.of, answer.get("groups") or ())),
            workers_message=str(workers.get("message") or ""),
            idle_timeout=None if idle_timeout is None else int(idle_timeout),
            outlives_lab=bool(answer.get("outlives_lab")),
            **texts(answer, "stage", "reason", "message", "scheduler_address", "dashboard_url", "note"),
            **texts(answer, "certificate_digest"),
        )

    @property
    def adaptive(self) -> bool:
        """True if the scheduler decides how many workers there are, between two bounds."""
        return self.minimum < self.maximum

    @property
    def has_started(self) -> bool:
        """True if clients can connect to the scheduler."""
        return self.status == "running" and bool(self.scheduler_address)

    @property
    def why(self) -> str:
        """What the service says about the state, in one line: its message, with stage and reason."""
        details = ", ".join(filter(None, (self.stage and f"stage '{self.stage}'", self.reason)))
        return (self.message or self.status) + (f" ({details})" if details else "")

    @property
    def scaling(self) -> str:
        """How many workers there are to be: "4", or "0-8"."""
        return _scaling(self.minimum, self.maximum, self.desired)

    def __repr__(self) -> str:
        return f"<DaskPool {self.name!r}: {self.status}, {self.ready} of {self.desired} workers, scale {self.scaling}>"
