"""Converts the service's events to JupyterHub's progress events for the spawn page."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from .recent_events import ProgressEvent, RecentEvents
from .sse import Event

# The Hub has a log in its memory for every lab, and in its database between restarts.
_MAX_EVENTS, _MAX_BYTES = 1000, 256 * 1024
_MAX_STORED_EVENTS, _MAX_STORED_BYTES = 200, 64 * 1024
_MAX_MESSAGE = 4000


class ProgressLog:
    """The log of one operation (a start or a stop) on one lab, and its waiting readers.

    The conversion is that of SQR-066: `progress` only changes the percentage; `info` and `error` are shown with the
    last percentage; `complete` and `failed` end the operation at 100. `end` shows the last two, because before that the
    operation may still be requested again (`go_on`). Long messages are cut, and the oldest ones are dropped.
    """

    def __init__(self) -> None:
        self._events = RecentEvents(_MAX_EVENTS, _MAX_BYTES)
        self.progress = 0
        self.begun = False
        self.complete = False
        self.last_error = ""
        self._outcome: Event | None = None
        self._changed = asyncio.Condition()

    @property
    def events(self) -> list[ProgressEvent]:
        """The newest events."""
        return self._events.since(0)

    @property
    def failed(self) -> bool:
        """True if the service's final event is that the operation failed."""
        return self._outcome is not None and self._outcome.type == "failed"

    @property
    def failure(self) -> str:
        """Why the operation failed, as a text for the user."""
        return self.last_error or (self._outcome.data if self._outcome else "") or "Operation failed"

    async def apply(self, batch: Iterable[Event]) -> bool:
        """Apply the events of one network read, and wake the readers once. True if the final event is among them."""
        async with self._changed:
            before = self._events.total
            for event in batch:
                self._apply(event._replace(data=_cut(event.data)))
            if self._events.total > before:
                self._changed.notify_all()
        return self._outcome is not None

    def _apply(self, event: Event) -> None:
        if self._outcome is not None:
            return
        match event.type:
            case "progress":
                # An invalid percentage is ignored; a spawn should not fail because of it.
                if event.data.strip().isdecimal() and len(event.data) < 10:
                    self.progress = max(self.progress, min(int(event.data), 100))
            case "info":
                self._show(event.data)
            case "error":
                self.last_error = event.data
                self._show(event.data)
            case "complete" | "failed":
                self._outcome = event
            case _:
                pass  # `stage`, and event types of later versions

    def _show(self, message: str) -> None:
        self._events.add({"progress": self.progress, "message": message})

    async def go_on(self, message: str) -> None:
        """Show that the operation is requested again; its events are added to this log."""
        async with self._changed:
            self._outcome = None
            self.last_error = ""
            self._show(message)
            self._changed.notify_all()

    async def end(self) -> None:
        """Show how the operation ended, if that is known, and release the readers."""
        async with self._changed:
            if self._outcome is not None and not self.complete:
                self.progress = 100
                self._show(self._outcome.data or f"Operation {self._outcome.type}")
            self.complete = True
            self._changed.notify_all()

    async def follow(self) -> AsyncIterator[ProgressEvent]:
        """Yield all events so far, then each new one, until the operation has ended."""
        seen = 0
        while True:
            async with self._changed:
                while self._events.total == seen and not self.complete:
                    await self._changed.wait()
                fresh = self._events.since(seen)
                seen = self._events.total
                ended = self.complete
            # Yielded outside the lock, so that a slow browser does not delay the spawn.
            for event in fresh:
                yield dict(event)
            if ended:
                return

    def to_state(self) -> dict[str, Any]:
        """The log in the form that JupyterHub stores."""
        stored = RecentEvents(_MAX_STORED_EVENTS, _MAX_STORED_BYTES, self.events)
        return {"events": stored.since(0), "progress": self.progress, "complete": self.complete}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "ProgressLog":
        """A log from the form that JupyterHub stored."""
        log = cls()
        log._events = RecentEvents(_MAX_EVENTS, _MAX_BYTES, state.get("events", []))
        log.progress = int(state.get("progress", 0))
        log.complete = bool(state.get("complete", False))
        log.begun = bool(log.events) or log.complete
        return log


def _cut(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else message[:_MAX_MESSAGE] + "…"
