"""The state of one lab as the service reports it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .json_answer import texts
from .web_address import WebAddress

_ALIVE = frozenset(("starting", "running", "terminating"))
# Not a status of the service, which has no entry for such a lab.
_GONE = "gone"
INTERRUPTED = "Interrupted"
"""The reason of a spawn that failed only because the service restarted."""


@dataclass(frozen=True, slots=True)
class LabState:
    """The state of a lab at one time. `status` may be a value that only a later version of the service has."""

    status: str
    pod: str = ""
    address: WebAddress | None = None
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    """The exit code of the lab's program, if the lab failed because that ended."""
    age: float | None = None
    """Seconds since the lab's spawn began, by the clock of the service; None if the service does not report it."""

    @property
    def alive(self) -> bool | None:
        """Whether the lab exists. None if this version does not know the status."""
        if self.stopped or self.status in ("failed", _GONE):
            return False
        return True if self.status in _ALIVE else None

    @property
    def exit_status(self) -> int:
        """The exit status of a lab that is not alive: that of its program, 1 for another failure, and 0 if the lab was
        stopped."""
        if self.status != "failed":
            return 0
        return self.exit_code if self.exit_code else 1

    @property
    def stopped(self) -> bool:
        """True if the lab's pod is gone, although other objects may still be being deleted."""
        return self.status in ("failed", "terminating") and self.pod == "missing"

    @classmethod
    def of(cls, entry: Any, now: datetime | None = None) -> "LabState":
        """The state in an object of the API. Raises `ValueError` for any other object."""
        if not isinstance(entry, Mapping) or not isinstance(entry.get("status"), str):
            raise ValueError("a lab without a status")
        return cls(
            status=entry["status"],
            address=WebAddress.of_url(str(url)) if (url := entry.get("url")) else None,
            exit_code=code if isinstance(code := entry.get("exit_code"), int) else None,
            age=_age(entry.get("started_at"), now),
            **texts(entry, "pod", "reason", "message"),
        )


NO_LAB = LabState(_GONE)
"""The state of a lab that does not exist."""


def _age(started_at: Any, now: datetime | None) -> float | None:
    try:
        started = datetime.fromisoformat(started_at)
        return ((now or datetime.now(UTC)) - started).total_seconds()
    except (TypeError, ValueError):  # no date, or one without a time zone
        return None
