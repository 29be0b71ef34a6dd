"""The answer of the service about all labs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .lab import Lab
from .lab_state import LabState


@dataclass(frozen=True, slots=True)
class StatusReport:
    """All labs (`complete`), or those that changed since the given revision; None for a lab that is gone."""

    revision: str
    complete: bool
    labs: Mapping[Lab, LabState | None]

    @classmethod
    def of_answer(cls, body: bytes) -> "StatusReport":
        """The report in an answer to `GET /lab-status`. Raises `ValueError` for any other answer."""
        report = json.loads(body)
        match report:
            case {"revision": str(revision), "complete": bool(complete), "labs": list(entries)}:
                return cls(revision, complete, dict(_entry(entry) for entry in entries))
        raise ValueError("a report without revision, complete or labs")


def _entry(entry: Any) -> tuple[Lab, LabState | None]:
    match entry:
        case {"username": str(user), "server": str(server), "status": status}:
            return Lab(user, server), None if status is None else LabState.of(entry)
    raise ValueError("an entry without username, server or status")
