"""Requests about what runs beside a lab, such as its kernels and its pools of Dask workers."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import aiohttp
from yarl import URL

from .client import refusal, retry_after
from .errors import Refused, ServiceError, Unreachable
from .sse import Event, EventStreamParser, StreamTooLong

REQUEST_TIMEOUT = 30.0
_CONNECT_TIMEOUT = 5.0
# The service sends a comment every 15 seconds.
_SILENCE_TIMEOUT = 45.0
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)


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
    ) -> bytes:
        """Send a request and return the body of the answer."""
        headers = {**self._headers(), **(headers or {})}
        limit = aiohttp.ClientTimeout(total=time_limit, sock_connect=_CONNECT_TIMEOUT)
        url = URL(self._url + path, encoded=True)
        try:
            async with (
                self._session(limit) as session,
                session.request(method, url, json=body, headers=headers, allow_redirects=False) as response,
            ):
                if response.status < 300 or response.status == 303:
                    return await response.read()
                error = await refusal(response)
        except _BROKEN as broken:
            raise _unreachable(method, url, broken) from broken
        raise _that_may_wait(error)

    async def events(self, path: str, parser: EventStreamParser) -> AsyncGenerator[Event, None]:
        """The events of a stream, to the end of this one connection; the parser knows where to resume."""
        headers = {**self._headers(), "Accept": "text/event-stream"}
        if parser.last_event_id:
            headers["Last-Event-ID"] = parser.last_event_id
        parser.reconnected()
        limit = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=_SILENCE_TIMEOUT)
        url = URL(self._url + path, encoded=True)
        try:
            async with (
                self._session(limit) as session,
                session.get(url, headers=headers, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise _that_may_wait(await refusal(response))
                async for chunk in response.content.iter_any():
                    for event in parser.feed(chunk):
                        yield event
        except (*_BROKEN, StreamTooLong) as broken:
            raise _unreachable("GET", url, broken) from broken

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token()}", "X-Requested-With": self._sender}

    def _session(self, limit: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=limit)


def is_gone(error: Refused) -> bool:
    """True if the service itself says that there is no such child or lab. A proxy's 404 has no type."""
    return error.status == 404 and any(error.types)


def _unreachable(method: str, url: URL, broken: Exception) -> Unreachable:
    unsent = isinstance(broken, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))
    return Unreachable(f"{method} {url}: {broken or type(broken).__name__}", unsent=unsent)


def _that_may_wait(error: ServiceError) -> ServiceError:
    """After too many requests (429) the same one may succeed later."""
    if isinstance(error, Refused) and error.status == 429:
        return Unreachable(str(error), unsent=True, retry_after=retry_after(error) or 1.0)
    return error
