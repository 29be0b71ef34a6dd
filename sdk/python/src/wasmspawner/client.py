"""The client of the service's REST API, for many labs at once."""

import asyncio
import json
import math
import ssl
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

import aiohttp

from .errors import Refused, ServiceError, Unreachable
from .lab import Lab
from .lab_state import LabState
from .request import MAX_ANSWER_BYTES, Answer, open_session, send, stream
from .retries import Retries
from .sse import Event, EventStreamParser
from .status_report import StatusReport

_TERMINAL = frozenset(("complete", "failed"))
# Ingresses close idle connections after 60 to 75 seconds. If the other side closes a connection just when a request is
# sent on it, the request fails, and it is unknown whether a spawn was accepted.
_KEEPALIVE_SECONDS = 15
_END_SECONDS = 0.5
_MAX_FORM_BYTES = 4 * 1024 * 1024
# About fifty thousand labs.
MAX_LIST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How to reach the service. All times are in seconds."""

    api_url: str
    ca_file: str = ""
    connect_timeout: float = 15.0
    request_timeout: float = 30.0
    retry_for: float = 45.0
    silence_timeout: float = 45.0
    max_requests: int = 64
    max_status_requests: int = 16
    status_interval: float = 5.0


class ServiceClient:
    """One connection pool for all spawners of a Hub.

    Event streams last as long as a spawn and are not limited. `max_requests` limits the requests that users wait for,
    so that a thousand spawns do not open a thousand further connections. Polls have a separate limit,
    `max_status_requests`, so that users do not wait for them.
    """

    _shared: ClassVar[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ClientOptions, "ServiceClient"]]] = (
        weakref.WeakKeyDictionary()
    )

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self._base = options.api_url.rstrip("/")
        tls = ssl.create_default_context(cafile=options.ca_file) if options.ca_file else True
        self._session = open_session(
            "wasmspawner-jupyterhub",
            connector=aiohttp.TCPConnector(limit=0, ssl=tls, keepalive_timeout=_KEEPALIVE_SECONDS),
        )
        self._user_slots = asyncio.Semaphore(options.max_requests)
        self._status_slots = asyncio.Semaphore(options.max_status_requests)
        self._request_timeout = aiohttp.ClientTimeout(
            total=options.request_timeout, sock_connect=options.connect_timeout
        )
        self._stream_timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=options.connect_timeout, sock_read=options.silence_timeout
        )
        # The Hub tells its spawners nothing when it ends, but cancels all tasks, after those that stop labs.
        self._closing = asyncio.create_task(self._close_when_cancelled())

    @classmethod
    def shared(cls, options: ClientOptions) -> "ServiceClient":
        """The client of the running event loop for these options."""
        clients = cls._shared.setdefault(asyncio.get_running_loop(), {})
        if options not in clients:
            clients[options] = cls(options)
        return clients[options]

    async def close(self) -> None:
        """Close all connections."""
        self._closing.cancel()
        await asyncio.gather(self._closing, return_exceptions=True)
        await self._session.close()

    async def _close_when_cancelled(self) -> None:
        async with self._session:
            await asyncio.Event().wait()

    # Routes

    async def spawn_form(self, lab: Lab, token: str, last_options: Mapping[str, Any] | None = None) -> str:
        """The user's options form, an HTML fragment. It begins with the choices of the last start that are still
        available."""
        answer = None
        if last_options:
            body = json.dumps({"last_options": last_options}).encode()
            try:
                answer = await self._patiently("POST", lab.form_path, token, body, max_bytes=_MAX_FORM_BYTES)
            except Refused as error:
                # An older service has no such route, another one may refuse what was once allowed, and a policy may fail
                # on the options of an earlier version.
                if error.status not in (405, 413, 422, 500):
                    raise
        if answer is None:
            answer = await self._patiently("GET", lab.form_path, token, max_bytes=_MAX_FORM_BYTES)
        return answer.body.decode("utf-8", "replace")

    async def spawn(self, lab: Lab, token: str, options: Mapping[str, Any], env: Mapping[str, str]) -> None:
        """Request a new lab, in one attempt. Raises `Refused` with status 409 if there is one already.

        After an `Unreachable` that is not `unsent` the lab may be starting all the same.
        """
        body = json.dumps({"options": options, "env": env}).encode()
        await self._request("POST", f"{lab.path}/spawn", token, body)

    async def lab(self, lab: Lab, token: str) -> LabState | None:
        """The lab's state; None if there is no lab. Repeats the request while the service is not reachable."""
        return await self._lab_state(self._patiently("GET", lab.path, token))

    async def lab_now(self, lab: Lab, token: str) -> LabState | None:
        """Like `lab`, in one attempt."""
        return await self._lab_state(self._request("GET", lab.path, token))

    async def polled_lab(self, lab: Lab, token: str) -> LabState | None:
        """Like `lab`, in one attempt and within the limit of polls."""
        return await self._lab_state(self._request("GET", lab.path, token, slots=self._status_slots))

    async def _lab_state(self, request: Awaitable[Answer]) -> LabState | None:
        try:
            answer = await request
        except Refused as error:
            if error.no_lab:
                return None
            raise
        return answer.decode(lambda entry: LabState.of(entry, answer.date))

    async def lab_status(self, token: str, since: str = "") -> StatusReport | None:
        """All labs, or those that changed since a revision; one attempt. None if the service does not have this
        route."""
        path = f"/lab-status?since={quote(since, safe='')}" if since else "/lab-status"
        try:
            # Only one such request runs at a time, and polls wait for it, so it does not count towards their limit.
            answer = await self._request("GET", path, token, slots=nullcontext(), max_bytes=MAX_LIST_BYTES)
        except Refused as error:
            if error.status in (404, 405):
                return None
            raise
        report = answer.decode(lambda report: StatusReport.of(report, len(answer.body)))
        if not since and not report.complete:
            raise Unreachable(f"GET {path} was answered with changes only")
        return report

    async def delete(self, lab: Lab, token: str) -> bool:
        """Begin to stop the lab, or join a stop under way; one attempt. False if there is no lab."""
        try:
            await self._request("DELETE", lab.path, token)
        except Refused as error:
            if error.no_lab:
                return False
            raise
        return True

    async def volumes(self, lab: Lab, token: str) -> list[str]:
        """The names of the volume claims that a server keeps while it has no lab."""
        answer = await self._patiently("GET", f"{lab.path}/volumes", token)
        return answer.decode(lambda volumes: [str(claim["name"]) for claim in volumes["claims"]])

    async def release_volumes(self, lab: Lab, token: str) -> tuple[list[str], list[str]]:
        """Delete the volumes of a deleted server, as far as policies allow. Returns the names of deleted and of kept
        volumes."""
        answer = await self._patiently("DELETE", f"{lab.path}/volumes", token)
        return answer.decode(_released_volumes)

    async def events(
        self, lab: Lab, token: str, *, give_up_after: float = math.inf
    ) -> AsyncGenerator[list[Event], None]:
        """The current operation's events up to `complete` or `failed`, in batches of one network read.

        Resumes after the last event received when a connection breaks or the service restarts. Raises the last error
        only after `give_up_after` seconds without a new event. Raises `Refused` at once if the service refuses the
        stream.
        """
        url, headers = f"{self._base}{lab.path}/events", {"Authorization": f"Bearer {token}"}
        parser = EventStreamParser()
        retries = None
        while True:
            try:
                connection = stream(self._session, url, parser, headers=headers, timeout=self._stream_timeout)
                async with aclosing(connection) as batches:
                    async for batch in batches:
                        retries = None
                        ended = any(event.type in _TERMINAL for event in batch)
                        if ended:
                            await _read_to_end(batches)
                        yield batch
                        if ended:
                            return
                broken: ServiceError = Unreachable(f"GET {url}: the stream ended before the operation")
            except Unreachable as error:
                broken = error
            except Refused as error:
                if not error.may_pass:
                    raise
                broken = error
            retries = retries or Retries(give_up_after, first=max(parser.retry or 0.5, 0.1), longest=10.0)
            await retries.pause(broken)
            parser.reconnected()

    # A single request

    async def _patiently(
        self, method: str, path: str, token: str, body: bytes | None = None, *, max_bytes: int = MAX_ANSWER_BYTES
    ) -> Answer:
        """Repeat a request for `retry_for` seconds while the service is not reachable (a restart, or a hand-over, takes seconds)."""
        retries = Retries(self.options.retry_for)
        while True:
            try:
                return await self._request(method, path, token, body, max_bytes=max_bytes)
            except Unreachable as error:
                await retries.pause(error)

    async def _request(
        self,
        method: str,
        path: str,
        token: str,
        body: bytes | None = None,
        *,
        slots: AbstractAsyncContextManager[None] | None = None,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        # aiohttp itself repeats a GET or DELETE once if the other side had closed a kept-alive connection.
        headers = {"Authorization": f"Bearer {token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        async with slots or self._user_slots:
            return await send(
                self._session,
                method,
                self._base + path,
                max_bytes=max_bytes,
                data=body,
                headers=headers,
                timeout=self._request_timeout,
            )


async def _read_to_end(batches: AsyncIterator[list[Event]]) -> None:
    """Read the end of a stream after its last event, so that the connection is kept for other requests."""
    with suppress(TimeoutError, ServiceError):
        async with asyncio.timeout(_END_SECONDS):
            async for _ in batches:
                pass


def _released_volumes(answer: Any) -> tuple[list[str], list[str]]:
    return [str(claim["name"]) for claim in answer["deleted"]], [str(claim["name"]) for claim in answer["kept"]]
