"""The state of one lab as the service reports it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .json_answer import texts
from .web_address import WebAddress

_ALIVE = frozenset(("starting", "running", "terminating"))


@dataclass(frozen=True, slots=True)
class LabState:
    """The state of a lab at one time. `status` may be a value that only a later version of the service has."""

    status: str
    pod: str = ""
    address: WebAddress | None = None
    reason: str = ""
    message: str = ""
    age: float | None = None
    """Seconds since the lab's spawn began, by the clock of the service; None if the service does not report it."""

    @property
    def alive(self) -> bool | None:
        """Whether the lab exists. None if this version does not know the status."""
        if self.stopped or self.status == "failed":
            return False
        return True if self.status in _ALIVE else None

    @property
    def stopped(self) -> bool:
        """True if the lab's pod is gone, although other objects may still be being deleted."""
        return self.status in ("failed", "terminating") and self.pod == "missing"

    @property
    def interrupted(self) -> bool:
        """True if the spawn failed only because the service restarted."""
        return self.status == "failed" and self.reason == "Interrupted"

    @classmethod
    def of(cls, entry: Any, now: datetime | None = None) -> "LabState":
        """The state in an object of the API. Raises `ValueError` for any other object."""
        if not isinstance(entry, Mapping) or not isinstance(entry.get("status"), str):
            raise ValueError("a lab without a status")
        return cls(
            status=entry["status"],
            address=WebAddress.of_url(str(url)) if (url := entry.get("url")) else None,
            age=_age(entry.get("started_at"), now),
            **texts(entry, "pod", "reason", "message"),
        )


def _age(started_at: Any, now: datetime | None) -> float | None:
    try:
        started = datetime.fromisoformat(started_at)
        return ((now or datetime.now(UTC)) - started).total_seconds()
    except (TypeError, ValueError):  # no date, or one without a time zone
        return None
