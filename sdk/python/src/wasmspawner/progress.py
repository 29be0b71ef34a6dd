"""What the Hub's spawn page shows: the service's events turned into JupyterHub's progress events."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from .sse import Event

# The Hub keeps the log in its database between restarts; a stream that never settles must not grow it for ever.
_KEPT_EVENTS = 200

ProgressEvent = dict[str, Any]


class ProgressLog:
    """The log of one operation (a start or a stop) on one lab, and who waits for it.

    The conversion is that of the specification: `progress` only moves the number; `info` and `error` are shown with
    the last number seen; `complete` and `failed` end the operation at 100. These two are shown by `end`: before that,
    the operation may still be asked for again (`go_on`).
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
        """The service's last word is that the operation failed."""
        return self._outcome is not None and self._outcome.type == "failed"

    @property
    def failure(self) -> str:
        """Why it failed, for the user."""
        return self.last_error or (self._outcome.data if self._outcome else "") or "Operation failed"

    async def apply(self, batch: Iterable[Event]) -> bool:
        """Take the events of one network read; wake the readers once. True when the service has said its last word."""
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
                # A number the bar cannot show is not worth failing a spawn for.
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
                pass  # `stage` and types of later versions are for other clients

    def _show(self, message: str) -> None:
        self.events.append({"progress": self.progress, "message": message})

    async def go_on(self, message: str) -> None:
        """Tell the user that the operation is asked for again; its events follow in this log."""
        async with self._changed:
            self._outcome = None
            self.last_error = ""
            self._show(message)
            self._changed.notify_all()

    async def end(self) -> None:
        """Show how the operation ended, if the service has said so, and release the readers."""
        async with self._changed:
            if self._outcome is not None and not self.complete:
                self.progress = 100
                self._show(self._outcome.data or f"Operation {self._outcome.type}")
            self.complete = True
            self._changed.notify_all()

    async def follow(self) -> AsyncIterator[ProgressEvent]:
        """Every event so far, then each new one, until the operation has ended."""
        seen = 0
        while True:
            async with self._changed:
                while len(self.events) == seen and not self.complete:
                    await self._changed.wait()
                fresh = self.events[seen:]
                ended = self.complete
            # Yielded outside the lock: a slow browser must not hold up the spawn.
            for event in fresh:
                yield dict(event)
            seen += len(fresh)
            if ended:
                return

    def to_state(self) -> dict[str, Any]:
        """The log as JupyterHub stores it."""
        return {"events": self.events[-_KEPT_EVENTS:], "progress": self.progress, "complete": self.complete}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "ProgressLog":
        """The log as JupyterHub stored it."""
        log = cls()
        log.events = list(state.get("events", []))
        log.progress = int(state.get("progress", 0))
        log.complete = bool(state.get("complete", False))
        log.begun = bool(log.events) or log.complete
        return log
