"""Errors of requests to the service."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .json_answer import decode

# Seconds; no answer makes a client wait longer.
_MAX_RETRY_AFTER = 60.0


class ServiceError(Exception):
    """The service could not do what was requested."""


class Unreachable(ServiceError):
    """No answer, or one from a service that is not ready (502, 503, 504): the state of the lab is unknown.

    `unsent` is true if the service has not begun the request. `retry_after` is the pause that it asks for, in seconds.
    """

    def __init__(self, message: str, *, unsent: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.unsent = unsent
        self.retry_after = retry_after


class LoginExpired(ServiceError):
    """The service does not accept the token that the authenticator has stored for the user."""


class Refused(ServiceError):
    """The service answered with a 4xx or 5xx of its own.

    `problems` are `(location, message)` pairs, the location without its leading `body`/`options`.
    """

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.problems: list[tuple[str, str]] = []
        self.types: frozenset[str] = frozenset()
        with suppress(ValueError):  # it is not from the service, but from a proxy before it
            self.problems, self.types = decode(body, _problems_and_types)
        super().__init__(f"{status}: {self.text or 'no detail given'}")

    @property
    def text(self) -> str:
        """What the service says, in one line."""
        return "; ".join(self.lines)

    @property
    def lines(self) -> list[str]:
        """What the service says, one line for each problem."""
        return [f"{location}: {message}" if location else message for location, message in self.problems]

    @property
    def retry_after(self) -> float:
        """The pause that the answer asks for, in seconds, and at most a minute; 0 if it does not ask for one."""
        seconds = self.headers.get("retry-after", "")
        return min(float(seconds), _MAX_RETRY_AFTER) if seconds.isascii() and seconds.isdigit() else 0.0

    @property
    def no_lab(self) -> bool:
        """True if the service itself reports that there is no such lab; false for a 404 of a proxy or a wrong
        `api_url`."""
        return self.status == 404 and "unknown_lab" in self.types

    @property
    def may_pass(self) -> bool:
        """True if another attempt may succeed: the service failed or is overloaded, or a proxy before it answered
        (errors of the service always have a type)."""
        return self.status >= 500 or self.status == 429 or not any(self.types)


def _problems_and_types(answer: Any) -> tuple[list[tuple[str, str]], frozenset[str]]:
    detail = answer["detail"]
    entries = [{"msg": detail}] if isinstance(detail, str) else [entry for entry in detail if isinstance(entry, dict)]
    problems = [(_location(entry), str(entry.get("msg", "")).strip()) for entry in entries]
    return problems, frozenset(str(entry.get("type", "")) for entry in entries)


def _location(entry: Mapping[str, Any]) -> str:
    loc = entry.get("loc")
    parts = [str(part) for part in loc] if isinstance(loc, list) else []
    while parts and parts[0] in ("body", "options", "path", "query", "header"):
        parts.pop(0)
    return ".".join(parts)
