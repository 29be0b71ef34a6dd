"""Asking the service for a lab."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from traitlets.log import get_logger

from .client import ServiceClient
from .errors import Refused, Unreachable
from .lab import Lab
from .lab_stop import LabStop
from .progress import ProgressLog
from .retries import Retries

# Started so many seconds before it was asked for, a lab still counts as the one asked for: the clocks of a proxy and of
# the service may differ, and HTTP's dates have no fractions.
_CLOCK_TOLERANCE = 2.0


class SpawnRequest:
    """One wish for a lab. It can be submitted again, with the same options, environment and token.

    A request may be accepted although its answer is lost. Sent again blindly it is refused because of the very lab it
    started, which must not be taken for a left-over one. So after a lost answer the lab is read first: what began
    since the request was first sent is ours, because the Hub starts a user's server one at a time.
    """

    def __init__(
        self,
        client: ServiceClient,
        lab: Lab,
        token: str,
        options: Mapping[str, Any],
        env: Mapping[str, str],
        *,
        hub_token: Callable[[], str],
        stop_timeout: float,
    ) -> None:
        self._client = client
        self._lab = lab
        self._token = token
        self._options = options
        self._env = env
        self._hub_token = hub_token
        self._stop_timeout = stop_timeout

    async def submit(self) -> None:
        """Ask until the service has accepted; its events are then those of this spawn. Raises `ServiceError`."""
        sent_at = asyncio.get_running_loop().time()
        while_away = Retries(self._client.options.retry_for)
        while_occupied = Retries(self._stop_timeout, longest=5.0)
        first = True
        while True:
            try:
                return await self._client.spawn(self._lab, self._token, self._options, self._env)
            except Unreachable as error:
                if not error.unsent and await self._began_since(sent_at):
                    return None
                await while_away.pause(error)
            except Refused as error:
                if await self._make_room(error, sent_at, first=first):
                    return None
                await while_occupied.pause(error)
            first = False

    async def _make_room(self, conflict: Refused, sent_at: float, *, first: bool) -> bool:
        """End what is in the way of the spawn. True if that is the lab asked for. Raises all other refusals."""
        stop = LabStop(self._client, self._lab, self._hub_token, self._stop_timeout)
        if "stop_in_progress" in conflict.types:
            await stop.wait()
            return False
        if not conflict.types & {"lab_exists", "spawn_in_progress"}:
            raise conflict
        surely_left_over = first and "lab_exists" in conflict.types
        if not surely_left_over and await self._began_since(sent_at):
            return True
        # JupyterHub starts a lab only when it knows of none: this one is left over (the Hub lost its database, a stop
        # was cut short), and its API token no longer opens the Hub.
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
