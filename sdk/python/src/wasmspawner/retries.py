"""Pauses between attempts."""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .errors import ServiceError, Unreachable

_FEWEST_ATTEMPTS = 3
_T = TypeVar("_T")


def backoff(failures: int, *, first: float, longest: float) -> float:
    """Seconds to wait after this number of failures in a row. It doubles each time, with a random part so that a
    thousand clients do not return at the same moment."""
    return min(first * 2 ** min(failures - 1, 10), longest) * random.uniform(0.5, 1.0)


class Retries:
    """Attempts at one thing: at least three, for `give_up_after` seconds from now."""

    def __init__(self, give_up_after: float = math.inf, *, first: float = 0.2, longest: float = 2.0) -> None:
        self._give_up_after = give_up_after
        self._give_up_at = asyncio.get_running_loop().time() + give_up_after
        self._first = first
        self._longest = longest
        self._failures = 0

    async def pause(self, error: ServiceError | None) -> None:
        """Wait before the next attempt, for as long as the service asks to. Raise `error` when the time is up."""
        self._failures += 1
        asked_for = error.retry_after if isinstance(error, Unreachable) else 0.0
        seconds = max(backoff(self._failures, first=self._first, longest=self._longest), asked_for)
        # On a busy Hub the time may be up before the first attempt was answered, so the number of attempts counts, too.
        exhausted = (
            asyncio.get_running_loop().time() + seconds > self._give_up_at and self._failures >= _FEWEST_ATTEMPTS
        )
        if error is not None and (exhausted or asked_for > self._give_up_after):
            raise error
        await asyncio.sleep(seconds)


async def patiently(
    call: Callable[[], Awaitable[_T]], outage: float, note: Callable[[Unreachable], None] = lambda error: None
) -> _T:
    """Repeat a request while the service is not reachable, for `outage` seconds, and for as long as it asks to wait."""
    retries = Retries(outage)
    waits = Retries(longest=5.0)
    while True:
        try:
            return await call()
        except Unreachable as error:
            note(error)
            if error.retry_after:
                await waits.pause(error)
                retries = Retries(outage)
            else:
                await retries.pause(error)
