"""Requests about what runs beside a lab, such as its kernels and its pools of Dask workers."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

import aiohttp

from .errors import Refused, Unreachable
from .request import Answer, open_session, send, stream
from .sse import Event, EventStreamParser

REQUEST_TIMEOUT = 30.0
_CONNECT_TIMEOUT = 5.0
# The service sends a comment every 15 seconds.
_SILENCE_TIMEOUT = 45.0


class ChildRequests:
    """Requests below one URL, each in one attempt. They raise `Refused` or `Unreachable`.

    Each request has a connection of its own. Jupyter and Dask make a few requests per minute, from several event loops
    (their synchronous classes have one per thread), and a pool of connections belongs to one loop. `sender` tells the
    service what sends the requests.
    """

    def __init__(self, url: str, token: Callable[[], str], sender: str) -> None:
        self._url = url
        self._token = token
        self._sender = sender

    async def send(
        self,
        method: str,
        path: str = "",
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        time_limit: float = REQUEST_TIMEOUT,
    ) -> Answer:
        """Send a request and return its answer."""
        limit = aiohttp.ClientTimeout(total=time_limit, sock_connect=_CONNECT_TIMEOUT)
        headers = {**self._headers(), **(headers or {})}
        with _unreachable_if_busy():
            async with open_session(self._sender, timeout=limit) as session:
                return await send(session, method, self._url + path, json=body, headers=headers)

    async def events(self, path: str, parser: EventStreamParser) -> AsyncGenerator[Event, None]:
        """The events of a stream, to the end of this one connection; the parser knows where to resume."""
        parser.reconnected()
        limit = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=_SILENCE_TIMEOUT)
        with _unreachable_if_busy():
            async with (
                open_session(self._sender, timeout=limit) as session,
                aclosing(stream(session, self._url + path, parser, headers=self._headers())) as batches,
            ):
                async for batch in batches:
                    for event in batch:
                        yield event

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token()}"}


def is_gone(error: Refused) -> bool:
    """True if the service itself says that there is no such child or lab. A proxy's 404 has no type."""
    return error.status == 404 and any(error.types)


@contextmanager
def _unreachable_if_busy() -> Iterator[None]:
    """After too many requests (429) the same one may succeed later."""
    try:
        yield
    except Refused as error:
        if error.status != 429:
            raise
        raise Unreachable(str(error), unsent=True, retry_after=error.retry_after or 1.0) from error
