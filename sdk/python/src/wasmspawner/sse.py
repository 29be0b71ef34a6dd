"""Parses server-sent events as the WHATWG HTML standard defines, from pieces of any size."""

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One complete event."""

    type: str
    data: str
    id: str
    url: str = ""
    """The URL of a lab that has been started: a field that the service adds to the standard's."""


class StreamTooLong(ValueError):
    """A line, or the data of one event, is longer than the limit, so this is not an event stream of the service."""


class EventStreamParser:
    """An incremental parser: takes bytes, returns complete events.

    A client needs `last_event_id` and `retry` (seconds; None until the server sends it) to reconnect.
    """

    def __init__(self, limit: int = 256 * 1024) -> None:
        self.last_event_id = ""
        self.retry: float | None = None
        self._id = ""
        self._limit = limit
        self._rest = b""
        self._started = False
        self._skip_newline = False
        self._reset_event()

    def _reset_event(self) -> None:
        self._type = ""
        self._url = ""
        self._data: list[str] = []
        self._size = 0

    def reconnected(self) -> None:
        """Discard the incomplete event of a broken connection; keep the id from which to resume."""
        self._id = self.last_event_id
        self._rest = b""
        self._started = False
        self._skip_newline = False
        self._reset_event()

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes, and return the events that they complete, in order."""
        data = self._rest + chunk
        self._rest = b""
        if self._skip_newline and data:
            # The previous bytes ended between the two characters of a CRLF.
            self._skip_newline = False
            data = data.removeprefix(b"\n")
        if not self._started:
            if _BOM.startswith(data):
                self._rest = data
                if data != _BOM:
                    return []
            self._started = True
            data = data.removeprefix(_BOM)
            self._rest = b""
        events: list[Event] = []
        for line in data.splitlines(keepends=True):
            if line.endswith((b"\n", b"\r")):
                self._line(line.rstrip(b"\r\n"), events)
            else:
                self._rest = line
        self._skip_newline = data.endswith(b"\r")
        if len(self._rest) + self._size > self._limit:
            raise StreamTooLong(f"an event of the stream exceeds {self._limit} bytes")
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            # Set only now: an event that is cut off after its id has not been received.
            self.last_event_id = self._id
            if self._data:
                events.append(Event(self._type or "message", "\n".join(self._data), self.last_event_id, self._url))
            self._reset_event()
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value.decode("utf-8", "replace"))
                self._size += len(value) + 1
            case b"event":
                self._type = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case b"url":
                self._url = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit() and len(value) < 10:
                self.retry = int(value) / 1000
            case _:
                pass  # a comment (empty name, for keepalive), or a field of a later standard
