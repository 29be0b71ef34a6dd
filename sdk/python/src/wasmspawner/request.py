"""One request to the service, and its answer.

The service may be faulty or compromised. So no redirect is followed, nothing is decompressed, and an answer is read up to
a limit. Whatever is wrong with an answer is `Unreachable`: the state of the lab stays unknown.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from .errors import Refused, ServiceError, Unreachable
from .json_answer import decode
from .sse import Event, EventStreamParser

MAX_ANSWER_BYTES = 1024 * 1024
_ACCEPTED = (*range(200, 300), 303)
# With `ValueError` for headers that cannot be sent, and events that are too long.
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer with status 2xx or 303. `request` is what it answers, such as `GET http://...`."""

    request: str
    body: bytes
    date: datetime | None = None

    def decode(self, parse: Callable[[Any], _T]) -> _T:
        """The result of `parse` for the JSON in the body. Raises `Unreachable` if the body is not understood."""
        try:
            return decode(self.body, parse)
        except ValueError as error:
            raise Unreachable(f"{self.request}: the answer is not understood: {error}") from error


def open_session(sender: str, **settings: Any) -> aiohttp.ClientSession:
    """A session for requests of this module. `sender` tells the service what sends them."""
    return aiohttp.ClientSession(
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        # Where an ingress authenticates by cookie, the service wants the last of requests that change something.
        headers={"Accept-Encoding": "identity", "User-Agent": sender, "X-Requested-With": sender},
        **settings,
    )


async def send(
    session: aiohttp.ClientSession, method: str, url: str, *, max_bytes: int = MAX_ANSWER_BYTES, **settings: Any
) -> Answer:
    """Send a request, in one attempt, and read its answer. Raises `Refused` or `Unreachable`."""
    async with _answered(session, method, url, _ACCEPTED, **settings) as response:
        body = await _read(response, max_bytes)
        return Answer(f"{method} {url}", body, http_date(response.headers.get("Date", "")))


async def stream(
    session: aiohttp.ClientSession, url: str, parser: EventStreamParser, *, headers: dict[str, str], **settings: Any
) -> AsyncGenerator[list[Event], None]:
    """The events of a stream in batches of one network read, to the end of this one connection. The parser knows where
    to resume. Raises `Refused` or `Unreachable`."""
    headers = {**headers, "Accept": "text/event-stream"}
    if parser.last_event_id:
        headers["Last-Event-ID"] = parser.last_event_id
    async with _answered(session, "GET", url, (200,), headers=headers, **settings) as response:
        async for chunk in response.content.iter_any():
            if batch := parser.feed(chunk):
                yield batch


@asynccontextmanager
async def _answered(
    session: aiohttp.ClientSession, method: str, url: str, accepted: Container[int], **settings: Any
) -> AsyncIterator[aiohttp.ClientResponse]:
    try:
        async with session.request(method, URL(url, encoded=True), allow_redirects=False, **settings) as response:
            if (encoding := response.headers.get("Content-Encoding", "identity").lower()) != "identity":
                raise Unreachable(f"{method} {url}: the answer is compressed ({encoding:.20}), which was not asked for")
            if response.status not in accepted:
                raise await _refusal(response)
            yield response
    except _BROKEN as error:
        unsent = isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))
        raise Unreachable(f"{method} {url}: {error or type(error).__name__}", unsent=unsent) from error


async def _read(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            raise Unreachable(f"{response.method} {response.url}: the answer is longer than {max_bytes} bytes")
    return bytes(body)


def http_date(text: str) -> datetime | None:
    """The time in a header `Date`; None if there is none, or none that is possible."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else None


async def _refusal(response: aiohttp.ClientResponse) -> ServiceError:
    """The error for an answer with another status."""
    body = await _read(response, MAX_ANSWER_BYTES)
    refused = Refused(response.status, body, {k.lower(): v for k, v in response.headers.items()})
    if response.status not in (502, 503, 504):
        return refused
    # With 503 the service has not accepted the request. 502 and 504 come from a proxy, which may have forwarded it.
    message = f"{response.method} {response.url.path}: {refused}"
    return Unreachable(message, unsent=response.status == 503, retry_after=refused.retry_after)
