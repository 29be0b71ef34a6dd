"""Errors between the Hub and the service, and how the Hub shows them to users."""

import html
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tornado import web

from .json_answer import decode

# Seconds; no answer makes a client wait longer.
_MAX_RETRY_AFTER = 60.0
_UNREACHABLE = "The service that starts labs cannot be reached at the moment. Please try again in a minute."


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
        return "; ".join(_line(*problem) for problem in self.problems)

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


def _line(location: str, message: str) -> str:
    return f"{location}: {message}" if location else message


class LabError(web.HTTPError):
    """An error with a text for the user. JupyterHub shows it on the spawn form, the progress page and in its API.

    The Hub adds `headers` to its answer (`Retry-After`).
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        log_message: str = "",
        message_html: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, log_message or message)
        self.jupyterhub_message = message
        if message_html:
            self.jupyterhub_html_message = message_html
        self.headers = dict(headers or {})


def for_user(error: ServiceError, doing: str) -> LabError:
    """The error that the Hub should raise. `doing` describes the attempt in the log: "starting the lab of ada"."""
    log_message = f"{doing}: {error}"
    if not isinstance(error, Refused):
        return LabError(503, _UNREACHABLE, log_message=log_message)
    if request_id := error.headers.get("x-request-id"):
        log_message += f" (request {request_id})"
    if error.status == 401 or (error.status == 403 and not error.problems):
        return LabError(500, "JupyterHub may not use the service that starts labs.", log_message=log_message)
    if error.status >= 500 or not error.problems:
        return LabError(502, "The service that starts labs failed to answer this request.", log_message=log_message)
    return LabError(
        error.status,
        error.text,
        log_message=log_message,
        message_html=_as_list(error.problems),
        headers={"Retry-After": f"{error.retry_after:.0f}"} if error.retry_after else None,
    )


def _as_list(problems: list[tuple[str, str]]) -> str:
    if len(problems) < 2:
        return ""
    return "<ul>" + "".join(f"<li>{html.escape(_line(*problem))}</li>" for problem in problems) + "</ul>"
