"""The answer of the service about all labs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import Unreachable
from .lab import Lab
from .lab_state import LabState

_MAX_REVISION = 1000


@dataclass(frozen=True, slots=True)
class StatusReport:
    """All labs (`complete`), or those that changed since the given revision; None for a lab that is gone."""

    revision: str
    complete: bool
    entries: list[Any]
    size: int
    """Bytes of the answer."""

    @classmethod
    def of(cls, report: Any, size: int) -> "StatusReport":
        """The report in an answer to `GET /lab-status`. Raises `ValueError` for any other answer."""
        match report:
            case {"revision": str(revision), "complete": bool(complete), "labs": list(entries)} if (
                len(revision) <= _MAX_REVISION
            ):
                return cls(revision, complete, entries, size)
        raise ValueError("a report without revision, complete or labs")

    def labs(self) -> Iterator[tuple[Lab, LabState | None]]:
        """The labs, one after the other: there may be thousands. Raises `Unreachable` for an entry that is none."""
        for entry in self.entries:
            try:
                lab = _entry(entry)
            except Exception as error:  # decoded JSON may have anything in any place
                raise Unreachable(f"an entry of the list of labs is not understood: {error!s:.200}") from error
            yield lab


def _entry(entry: Any) -> tuple[Lab, LabState | None]:
    match entry:
        case {"username": str(user), "server": str(server), "status": status}:
            return Lab(user, server), None if status is None else LabState.of(entry)
    raise ValueError("an entry without username, server or status")
