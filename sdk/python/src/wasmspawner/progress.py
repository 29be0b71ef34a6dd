"""Converts the service's events to JupyterHub's progress events for the spawn page."""

import asyncio
import html
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from .recent_events import ProgressEvent, RecentEvents
from .sse import Event

# The Hub has a log in its memory for every lab.
_MAX_EVENTS, _MAX_BYTES = 1000, 256 * 1024
_MAX_MESSAGE = 4000
# Seconds between two events for one reader: each costs the Hub an answer to the browser.
_PAUSE = 0.5


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
        self.last_error = ""
        self._outcome: Event | None = None
        self._changed = asyncio.Condition()
        self._ended = asyncio.Event()

    @property
    def events(self) -> list[ProgressEvent]:
        """The newest events."""
        return self._events.since(0)

    @property
    def complete(self) -> bool:
        """True once the operation has ended."""
        return self._ended.is_set()

    @property
    def failed(self) -> bool:
        """True if the service's final event is that the operation failed."""
        return self._outcome is not None and self._outcome.type == "failed"

    @property
    def url(self) -> str:
        """The URL of the lab that has been started, if the service has sent it."""
        return self._outcome.url if self._outcome else ""

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
        self._outcome = None
        self.last_error = ""
        await self.show(message)

    async def show(self, message: str) -> None:
        """Show a message of this package."""
        async with self._changed:
            self._show(message)
            self._changed.notify_all()

    async def end(self) -> None:
        """Show how the operation ended, if that is known, and release the readers."""
        async with self._changed:
            if self._outcome is not None and not self.complete:
                self.progress = 100
                self._show(self._outcome.data or f"Operation {self._outcome.type}")
            self._ended.set()
            self._changed.notify_all()

    async def follow(self) -> AsyncIterator[ProgressEvent]:
        """Yield all events so far as one, and so the new ones every half second, until the operation has ended."""
        seen = 0
        while True:
            async with self._changed:
                while self._events.total == seen and not self.complete:
                    await self._changed.wait()
                fresh = self._events.since(seen)
                seen = self._events.total
                ended = self.complete
            # Yielded outside the lock, so that a slow browser does not delay the spawn.
            if fresh:
                yield _as_one(fresh)
            if ended:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await self._ended.wait()


def _as_one(events: list[ProgressEvent]) -> ProgressEvent:
    """One event with the lines of all."""
    if len(events) == 1:
        return dict(events[0])
    lines = [event["message"] for event in events]
    as_html = "<br>".join(html.escape(line) for line in lines)
    return {"progress": events[-1]["progress"], "message": "\n".join(lines), "html_message": as_html}


def _cut(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else message[:_MAX_MESSAGE] + "…"
