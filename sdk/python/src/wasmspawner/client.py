"""The service's REST API, for as many labs at once as the Hub has users."""

import asyncio
import atexit
import json
import random
import ssl
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

import aiohttp
from yarl import URL

from .errors import Refused, ServiceError, Unreachable
from .sse import Event, EventStreamParser, StreamTooLong

_NOT_READY = frozenset((502, 503, 504))
_TERMINAL = frozenset(("complete", "failed"))
_FEWEST_ATTEMPTS = 3
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)


def _segment(name: str) -> str:
    """A name as one path segment; `.` and `..` too, which `quote` leaves alone and proxies resolve."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


@dataclass(frozen=True, slots=True)
class Lab:
    """Which lab: a user's default server (`server` is "") or one of their named ones."""

    user: str
    server: str = ""

    @property
    def path(self) -> str:
        """The lab's resource, below the API's base."""
        path = f"/labs/{_segment(self.user)}"
        return f"{path}/servers/{_segment(self.server)}" if self.server else path

    @property
    def form_path(self) -> str:
        """The user's spawn form, below the API's base."""
        return f"/spawn-form/{_segment(self.user)}"


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How to reach the service. All times in seconds."""

    api_url: str
    ca_file: str = ""
    connect_timeout: float = 15.0
    request_timeout: float = 30.0
    retry_for: float = 15.0
    silence_timeout: float = 45.0
    max_requests: int = 64


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx or 3xx, read to its end."""

    status: int
    body: bytes


class ServiceClient:
    """One connection pool for all spawners of a Hub.

    Event streams live as long as a spawn and are not counted; plain requests are bounded by `max_requests`, so that
    a thousand spawns neither starve each other's streams nor open a thousand connections more.
    """

    _shared: ClassVar[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ClientOptions, "ServiceClient"]]] = (
        weakref.WeakKeyDictionary()
    )

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self._base = options.api_url.rstrip("/")
        tls = ssl.create_default_context(cafile=options.ca_file) if options.ca_file else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls, keepalive_timeout=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "wasmspawner-jupyterhub"},
        )
        self._slots = asyncio.Semaphore(options.max_requests)
        self._request_timeout = aiohttp.ClientTimeout(
            total=options.request_timeout, sock_connect=options.connect_timeout
        )
        self._stream_timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=options.connect_timeout, sock_read=options.silence_timeout
        )
        atexit.register(_close_at_exit, weakref.ref(self))

    @classmethod
    def shared(cls, options: ClientOptions) -> "ServiceClient":
        """The running loop's client for these options."""
        clients = cls._shared.setdefault(asyncio.get_running_loop(), {})
        if options not in clients:
            clients[options] = cls(options)
        return clients[options]

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    # The routes

    async def spawn_form(self, lab: Lab, token: str) -> str:
        """The user's options form, an HTML fragment."""
        answer = await self._patiently("GET", lab.form_path, token)
        return answer.body.decode("utf-8", "replace")

    async def spawn(self, lab: Lab, token: str, options: Mapping[str, Any], env: Mapping[str, str]) -> None:
        """Queue a new lab. Raises `Refused` with status 409 where there is one already."""
        body = json.dumps({"options": options, "env": env}).encode()
        await self._patiently("POST", f"{lab.path}/spawn", token, body)

    async def lab(self, lab: Lab, token: str, *, patiently: bool = False) -> dict[str, Any] | None:
        """The lab's state, None if there is no lab. Asks only once unless `patiently`: who polls comes again."""
        ask = self._patiently if patiently else self._request
        try:
            answer = await ask("GET", lab.path, token)
        except Refused as error:
            if error.no_lab:
                return None
            raise
        try:
            body = json.loads(answer.body)
        except ValueError as error:
            raise Unreachable(f"GET {lab.path} was answered with something that is not JSON") from error
        if not isinstance(body, dict):
            raise Unreachable(f"GET {lab.path} was answered with JSON that is not an object")
        return body

    async def delete(self, lab: Lab, token: str) -> bool:
        """Begin to stop the lab. False if there is none."""
        try:
            await self._patiently("DELETE", lab.path, token)
        except Refused as error:
            if error.no_lab:
                return False
            raise
        return True

    async def release_volumes(self, lab: Lab, token: str) -> tuple[list[str], list[str]]:
        """Delete what volumes of a deleted server may go. The names of the deleted and of the kept ones."""
        answer = await self._patiently("DELETE", f"{lab.path}/volumes", token)
        try:
            body = json.loads(answer.body)
            return [claim["name"] for claim in body["deleted"]], [claim["name"] for claim in body["kept"]]
        except (ValueError, KeyError, TypeError) as error:
            raise Unreachable(f"DELETE {lab.path}/volumes was answered with something unexpected") from error

    async def events(self, lab: Lab, token: str) -> AsyncGenerator[list[Event], None]:
        """The current operation's events, in batches of one network read, to its `complete` or `failed`.

        Survives broken connections and restarts of the service: it resumes after the last event received, for as long
        as its reader has patience. Raises `Refused` when the service says that this stream is not to be had.
        """
        parser = EventStreamParser()
        failures = 0
        while True:
            try:
                async with aclosing(self._stream(lab, token, parser)) as stream:
                    async for batch in stream:
                        failures = 0
                        yield batch
                        if any(event.type in _TERMINAL for event in batch):
                            return
            except (Unreachable, StreamTooLong):
                pass
            failures += 1
            await asyncio.sleep(_backoff(failures, first=parser.retry or 0.5))
            parser.reconnected()

    async def _stream(self, lab: Lab, token: str, parser: EventStreamParser) -> AsyncGenerator[list[Event], None]:
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        if parser.last_event_id:
            headers["Last-Event-ID"] = parser.last_event_id
        url = URL(f"{self._base}{lab.path}/events", encoded=True)
        try:
            async with self._session.get(url, headers=headers, timeout=self._stream_timeout) as response:
                if response.status != 200:
                    raise await _refusal(response)
                async for chunk in response.content.iter_any():
                    if batch := parser.feed(chunk):
                        yield batch
        except _BROKEN as error:
            raise Unreachable(f"GET {lab.path}/events: {error or type(error).__name__}") from error

    # One request

    async def _patiently(self, method: str, path: str, token: str, body: bytes | None = None) -> Answer:
        """Ask again while the service is away (it restarts in seconds), for `retry_for` seconds."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self.options.retry_for
        failures = 0
        while True:
            try:
                return await self._request(method, path, token, body)
            except Unreachable as error:
                failures += 1
                pause = _backoff(failures, first=0.2, longest=2.0)
                # A busy Hub may find its timers expired before it has looked once: time alone is not enough.
                exhausted = loop.time() + pause > give_up and failures >= _FEWEST_ATTEMPTS
                # A spawn that may have been accepted is not sent twice.
                if exhausted or (method == "POST" and not error.unsent):
                    raise
            await asyncio.sleep(pause)

    async def _request(self, method: str, path: str, token: str, body: bytes | None = None) -> Answer:
        headers = {"Authorization": f"Bearer {token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        url = URL(self._base + path, encoded=True)
        try:
            async with (
                self._slots,
                self._session.request(
                    method, url, data=body, headers=headers, allow_redirects=False, timeout=self._request_timeout
                ) as response,
            ):
                if response.status >= 400:
                    raise await _refusal(response)
                return Answer(response.status, await response.read())
        except _BROKEN as error:
            unsent = isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))
            raise Unreachable(f"{method} {path}: {error or type(error).__name__}", unsent=unsent) from error


async def _refusal(response: aiohttp.ClientResponse) -> ServiceError:
    body = await response.read()
    refused = Refused(response.status, body, {k.lower(): v for k, v in response.headers.items()})
    if response.status in _NOT_READY:
        return Unreachable(f"{response.method} {response.url.path}: {refused}", unsent=True)
    return refused


def _backoff(failures: int, first: float, longest: float = 10.0) -> float:
    """Seconds to wait after so many failures in a row: doubling, and spread so that a thousand clients do not return
    in step."""
    return min(first * 2 ** min(failures - 1, 10), longest) * random.uniform(0.5, 1.0)


def _close_at_exit(reference: "weakref.ref[ServiceClient]") -> None:
    """The Hub gives its spawners no chance to say goodbye; without one aiohttp fills the Hub's log."""
    if (client := reference()) is not None:
        with suppress(Exception):
            asyncio.run(client.close())
