"""Requests a lab from the service."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from traitlets.log import get_logger

from .client import ServiceClient
from .errors import LoginExpired, Refused, Unreachable
from .lab import Lab
from .lab_stop import LabStop
from .progress import ProgressLog
from .retries import Retries

# A lab that began up to this many seconds before the request still counts as the requested lab: the clocks of a proxy
# and the service may differ, and HTTP dates have no fractions.
_CLOCK_TOLERANCE = 2.0


class SpawnRequest:
    """One request for a lab. It can be submitted again, with the same options, environment and token.

    The service may accept a request although its answer is lost. A repeated request would then be refused because of
    the very lab that it started, which must not be mistaken for one left over from before. So after a lost answer the
    lab is read first. A lab that began after the first request is the requested one, because the Hub runs one start at
    a time.
    """

    def __init__(
        self,
        client: ServiceClient,
        lab: Lab,
        token: str,
        options: Mapping[str, Any],
        env: Mapping[str, str],
        *,
        login: bool,
        hub_token: Callable[[], str],
        stop_timeout: float,
    ) -> None:
        """`login` is true if the token is one that the authenticator has stored, and not that of the server."""
        self._client = client
        self._lab = lab
        self._token = token
        self._login = login
        self.options = options
        self._env = env
        self._hub_token = hub_token
        self._stop_timeout = stop_timeout

    async def submit(self) -> None:
        """Repeat the request until it is accepted; then the lab's events are those of this spawn. Raises
        `ServiceError`."""
        sent_at = asyncio.get_running_loop().time()
        while_away = Retries(self._client.options.retry_for)
        while_occupied = Retries(self._stop_timeout, longest=5.0)
        first = True
        while True:
            try:
                return await self._client.spawn(self._lab, self._token, self.options, self._env)
            except Unreachable as error:
                if not error.unsent and await self._began_since(sent_at):
                    return None
                await while_away.pause(error)
            except Refused as error:
                if error.status == 401 and self._login:
                    raise LoginExpired(str(error)) from error
                if await self._make_room(error, sent_at, first=first):
                    return None
                await while_occupied.pause(error)
            first = False

    async def _make_room(self, conflict: Refused, sent_at: float, *, first: bool) -> bool:
        """Stop a lab that prevents the spawn. True if it is the requested lab. Raises all other refusals."""
        stop = LabStop(self._client, self._lab, self._hub_token, self._stop_timeout)
        if "stop_in_progress" in conflict.types:
            await stop.wait()
            return False
        if not conflict.types & {"lab_exists", "spawn_in_progress"}:
            raise conflict
        surely_left_over = first and "lab_exists" in conflict.types
        if not surely_left_over and await self._began_since(sent_at):
            return True
        # JupyterHub starts a lab only if it knows of none. So this lab is left over (the Hub lost its database, or a
        # stop was interrupted), and its API token is no longer valid at the Hub.
        get_logger().warning("Stopping the lab that %s already has, unknown to this Hub", self._lab)
        await stop.run(ProgressLog())
        return False

    async def _began_since(self, sent_at: float) -> bool:
        lab = await self._client.lab(self._lab, self._hub_token())
        if lab is None or lab.status not in ("starting", "running"):
            return False
        if lab.age is None:
            return lab.status == "starting"
        return lab.age <= asyncio.get_running_loop().time() - sent_at + _CLOCK_TOLERANCE
