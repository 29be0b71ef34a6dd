"""Errors of a kernel's start. A Jupyter server shows its user the message of an HTTP error, and nothing of any other
error; so these are both what `jupyter_client` documents and HTTP errors."""

from tornado.web import HTTPError


class KernelNotStarted(RuntimeError, HTTPError):
    """The kernel cannot be started, or has failed."""

    def __init__(self, message: str) -> None:
        HTTPError.__init__(self, 500, message)
        self._text = message

    def __str__(self) -> str:
        return self._text


class KernelNotAllowed(PermissionError, HTTPError):
    """The site's policy, or a limit, does not allow this kernel."""

    def __init__(self, message: str) -> None:
        HTTPError.__init__(self, 403, message)
        self._text = message

    def __str__(self) -> str:
        return self._text
