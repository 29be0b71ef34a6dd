"""Logs the beginning and the end of an outage."""

from traitlets.log import get_logger


class OutageLog:
    """Logs one line when requests begin to fail and one when they succeed again, however many requests there are."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._out = False

    def failed(self, error: Exception) -> None:
        """Report that a request failed."""
        if not self._out:
            get_logger().warning("%s: unknown, the last answers stand: %s", self._subject, error)
        self._out = True

    def succeeded(self) -> None:
        """Report that a request succeeded."""
        if self._out:
            get_logger().info("%s: known again", self._subject)
        self._out = False
