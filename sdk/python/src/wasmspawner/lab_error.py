"""Errors that JupyterHub shows to users."""

import html
import re
from collections.abc import Mapping

from tornado import web

from .errors import LoginExpired, Refused, ServiceError

try:
    from jupyterhub.spawner import SpawnException
except ImportError:  # JupyterHub 5

    class SpawnException(web.HTTPError):  # type: ignore[no-redef]
        """The error of the same name in JupyterHub 6, which has the same arguments."""

        def __init__(
            self, message: str, *, reason: str, log_message: str = "", message_html: str = "", status_code: int = 400
        ) -> None:
            super().__init__(status_code, log_message or message, reason=reason)


_UNREACHABLE = "The service that starts labs cannot be reached at the moment. Please try again in a minute."
_LOGIN_EXPIRED = "Your login has expired. Log out of JupyterHub, log in again, and start your server then."
# The reasons of the service are such words. Anything else would be text of an error as a label of the Hub's metrics.
_WORD = re.compile(r"[A-Za-z][A-Za-z_]{0,39}")


class LabError(SpawnException):
    """An error with a text for the user. JupyterHub shows it on the spawn form, the progress page and in its API.

    JupyterHub 6 does not count it for `consecutive_failure_limit`, because a restart of the Hub would not help. `reason`
    is a word for its metrics. The Hub adds `headers` to its answer (`Retry-After`).
    """

    log_message = ""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str,
        log_message: str = "",
        message_html: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        reason = reason if _WORD.fullmatch(reason) else "other"
        super().__init__(message, reason=reason, log_message=log_message, message_html=message_html, status_code=status)
        self.log_message = log_message or message
        self.jupyterhub_message = message
        if message_html:
            self.jupyterhub_html_message = message_html
        self.headers = dict(headers or {})

    def get_message(self) -> str:
        """The text for the log."""
        return self.log_message


def for_user(error: ServiceError, doing: str) -> LabError:
    """The error that the Hub should raise. `doing` describes the attempt in the log: "starting the lab of ada"."""
    log_message = f"{doing}: {error}"
    if isinstance(error, LoginExpired):
        return LabError(403, _LOGIN_EXPIRED, reason="login_expired", log_message=log_message)
    if not isinstance(error, Refused):
        return LabError(503, _UNREACHABLE, reason="unreachable", log_message=log_message)
    if request_id := error.headers.get("x-request-id"):
        log_message += f" (request {request_id})"
    if error.status == 401 or (error.status == 403 and not error.problems):
        message = "JupyterHub may not use the service that starts labs."
        return LabError(500, message, reason="no_access", log_message=log_message)
    if error.status >= 500 or not error.problems:
        message = "The service that starts labs failed to answer this request."
        return LabError(502, message, reason="service_failed", log_message=log_message)
    return LabError(
        error.status,
        error.text,
        reason=min(error.types, default="refused"),
        log_message=log_message,
        message_html=_as_list(error.lines),
        headers={"Retry-After": f"{error.retry_after:.0f}"} if error.retry_after else None,
    )


def _as_list(lines: list[str]) -> str:
    if len(lines) < 2:
        return ""
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"
