"""What the service says about a Dask pool."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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

    @classmethod
    def of_answer(cls, body: bytes) -> "PoolState":
        """Parse an answer. Raises `ValueError` if it is not understood."""
        try:
            answer = json.loads(body)
            workers: Mapping[str, Any] = answer.get("workers") or {}
            idle_timeout = answer.get("idle_timeout")
            return cls(
                name=str(answer["name"]),
                status=str(answer["status"]),
                stage=answer.get("stage") or "",
                reason=answer.get("reason") or "",
                message=answer.get("message") or "",
                **{key: int(workers.get(key) or 0) for key in ("desired", "ready", "pods", "minimum", "maximum")},
                workers_message=workers.get("message") or "",
                scheduler_address=answer.get("scheduler_address") or "",
                dashboard_url=answer.get("dashboard_url") or "",
                idle_timeout=None if idle_timeout is None else int(idle_timeout),
                outlives_lab=bool(answer.get("outlives_lab")),
                note=answer.get("note") or "",
                certificate_digest=answer.get("certificate_digest") or "",
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the answer about a Dask pool is not understood: {error!r}") from error

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
        return f"{self.minimum}-{self.maximum}" if self.adaptive else str(self.desired)

    def __repr__(self) -> str:
        return f"<DaskPool {self.name!r}: {self.status}, {self.ready} of {self.desired} workers, scale {self.scaling}>"
