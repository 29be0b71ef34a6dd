"""The newest progress events of an operation, limited in number and size."""

import json
from collections import deque
from itertools import islice
from typing import Any

ProgressEvent = dict[str, Any]

_DROPPED = "Earlier messages are not shown."


class RecentEvents:
    """A list from which the oldest events are dropped when it exceeds a limit. `max_bytes` counts the events as JSON."""

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self.total = 0
        """How many events were added, with those that were dropped."""
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._events: deque[ProgressEvent] = deque()
        self._bytes = 0

    def add(self, event: ProgressEvent) -> None:
        """Add an event, and drop the oldest ones that are too many."""
        self.total += 1
        self._events.append(event)
        self._bytes += _size(event)
        while len(self._events) > self._max_events or self._bytes > self._max_bytes:
            self._bytes -= _size(self._events.popleft())

    def since(self, seen: int) -> list[ProgressEvent]:
        """The events after the first `seen` of all. If some of them were dropped, an event says so in their place."""
        dropped = self.total - len(self._events)
        events = list(islice(self._events, max(seen - dropped, 0), None))
        if seen < dropped:
            progress = events[0]["progress"] if events else 0
            events.insert(0, {"progress": progress, "message": _DROPPED})
        return events


def _size(event: ProgressEvent) -> int:
    return len(json.dumps(event))
