"""The log of an outage."""

from traitlets.log import get_logger


class OutageLog:
    """Logs that something cannot be learned when that begins and when it ends, however many ask meanwhile."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._out = False

    def failed(self, error: Exception) -> None:
        """It could not be learned."""
        if not self._out:
            get_logger().warning("%s: unknown, the last answers stand: %s", self._subject, error)
        self._out = True

    def succeeded(self) -> None:
        """It could be learned."""
        if self._out:
            get_logger().info("%s: known again", self._subject)
        self._out = False
