"""The state of one lab as the service reports it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_ALIVE = frozenset(("starting", "running", "terminating"))


@dataclass(frozen=True, slots=True)
class LabState:
    """The state of a lab at one time. `status` may be a value that only a later version of the service has."""

    status: str
    pod: str = ""
    url: str = ""
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
        texts = {name: str(entry.get(name) or "") for name in ("pod", "url", "reason", "message")}
        return cls(status=entry["status"], age=_age(entry.get("started_at"), now), **texts)

    @classmethod
    def of_answer(cls, body: bytes, date: str) -> "LabState":
        """The state in an answer to `GET /labs/...`, with the answer's `Date`."""
        return cls.of(json.loads(body), _http_date(date))


def _age(started_at: Any, now: datetime | None) -> float | None:
    try:
        started = datetime.fromisoformat(started_at)
        return ((now or datetime.now(UTC)) - started).total_seconds()
    except (TypeError, ValueError):  # no date, or one without a time zone
        return None


def _http_date(date: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(date)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None
