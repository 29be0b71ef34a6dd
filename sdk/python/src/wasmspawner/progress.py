"""Converts the service's events to JupyterHub's progress events for the spawn page."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from .sse import Event

# The Hub stores the log in its database between restarts, so its size must be limited.
_KEPT_EVENTS = 200

ProgressEvent = dict[str, Any]


class ProgressLog:
    """The log of one operation (a start or a stop) on one lab, and its waiting readers.

    The conversion is that of SQR-066: `progress` only changes the percentage; `info` and `error` are shown with the
    last percentage; `complete` and `failed` end the operation at 100. `end` shows the last two, because before that the
    operation may still be requested again (`go_on`).
    """

    def __init__(self) -> None:
        self.events: list[ProgressEvent] = []
        self.progress = 0
        self.begun = False
        self.complete = False
        self.last_error = ""
        self._outcome: Event | None = None
        self._changed = asyncio.Condition()

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
            before = len(self.events)
            for event in batch:
                self._apply(event)
            if len(self.events) > before:
                self._changed.notify_all()
        return self._outcome is not None

    def _apply(self, event: Event) -> None:
        if self._outcome is not None:
            return
        match event.type:
            case "progress":
                # An invalid percentage is ignored; a spawn should not fail because of it.
                if event.data.strip().isdecimal():
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
        self.events.append({"progress": self.progress, "message": message})

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
                while len(self.events) == seen and not self.complete:
                    await self._changed.wait()
                fresh = self.events[seen:]
                ended = self.complete
            # Yielded outside the lock, so that a slow browser does not delay the spawn.
            for event in fresh:
                yield dict(event)
            seen += len(fresh)
            if ended:
                return

    def to_state(self) -> dict[str, Any]:
        """The log in the form that JupyterHub stores."""
        return {"events": self.events[-_KEPT_EVENTS:], "progress": self.progress, "complete": self.complete}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "ProgressLog":
        """A log from the form that JupyterHub stored."""
        log = cls()
        log.events = list(state.get("events", []))
        log.progress = int(state.get("progress", 0))
        log.complete = bool(state.get("complete", False))
        log.begun = bool(log.events) or log.complete
        return log
