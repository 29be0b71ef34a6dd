"""Starting a Dask pool, or waiting for one that starts."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import Refused, ServiceError, Unreachable
from ..retries import Retries, backoff, patiently
from ..sse import EventStreamParser
from .certificate import Certificate
from .pool_api import OUTAGE, PoolApi
from .pool_errors import PoolError, PoolExists, PoolUnknown, for_user
from .pool_state import PoolState
from .pools import unknown

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 1.0
# How long a failed start waits for the service to accept the deletion.
_DELETION = 5.0


class PoolStart:
    """One start of a pool, within `timeout` seconds. `say` gets what the service reports meanwhile."""

    def __init__(self, api: PoolApi, name: str, timeout: float, say: Callable[[str], None]) -> None:
        self._api = api
        self._name = name
        self._timeout = timeout
        self._say = say
        self._created = False
        self._progress = "the service has not answered"

    async def create(
        self, request: Mapping[str, Any], certificate: Certificate, on_created: Callable[[], None]
    ) -> PoolState:
        """Start the pool and wait until its scheduler can be reached. If that fails, the pool is deleted.

        Raises `PermissionError` if the user may not do that, `PoolExists`, and else `PoolError` with the service's
        reason. `on_created` is called when the service has accepted the pool.
        """
        try:
            tls = {"certificate": certificate.certificate, "key": certificate.key}
            return await self._within_timeout(self._create({**request, "tls": tls}, certificate.digest, on_created))
        except BaseException:
            if self._created:
                await delete_pool(self._api, self._name, certificate.digest)
            raise

    async def wait(self) -> PoolState:
        """Wait until the scheduler of an existing pool can be reached. Raises `PoolUnknown` or `PoolError`."""
        return await self._within_timeout(self._existing())

    async def _within_timeout(self, coroutine: Any) -> PoolState:
        try:
            async with asyncio.timeout(self._timeout):
                return await coroutine
        except TimeoutError as error:
            late = f"The Dask pool '{self._name}' did not start within {self._timeout:g} seconds: {self._progress}."
            raise PoolError(late) from error
        except ServiceError as error:
            raise for_user(error, f"start the Dask pool '{self._name}'") from error

    async def _existing(self) -> PoolState:
        pool = await patiently(lambda: self._api.get(self._name), OUTAGE)
        if pool is None:
            names = await patiently(self._api.names, OUTAGE)
            raise PoolUnknown(unknown(self._name, names))
        return await self._until_started()

    async def _create(self, request: Mapping[str, Any], digest: str, on_created: Callable[[], None]) -> PoolState:
        async def attempt() -> None:
            try:
                await self._api.create(self._name, request)
            except Unreachable as error:
                self._progress = str(error)
                self._created = self._created or not error.unsent
                raise
            self._created = True

        failures = 0
        while True:
            try:
                await patiently(attempt, OUTAGE)
                break
            except Refused as error:
                if error.status != 409:
                    raise
                pool = await patiently(lambda: self._api.get(self._name), OUTAGE)
                failures += 1
                if pool is None:
                    # Either a pool of this name was deleted just now, or the lab is not running.
                    if failures > 2:
                        raise
                elif pool.status != "terminating":
                    if pool.certificate_digest == digest:
                        break  # an earlier attempt has started it, and its answer was lost
                    raise PoolExists(
                        f"There is a Dask pool '{self._name}' already: WasmSpawnerCluster.from_name('{self._name}') "
                        f"connects to it, and stop_pool('{self._name}') stops it."
                    ) from error
                else:
                    self._progress = "the former pool of this name is still being deleted"
            await asyncio.sleep(_pause(failures))
        on_created()
        return await self._until_started()

    async def _until_started(self) -> PoolState:
        reporting = asyncio.ensure_future(self._report_events())
        try:
            for polls in itertools.count(1):
                try:
                    pool = await self._api.get(self._name)
                except Unreachable as error:
                    self._progress = str(error)
                else:
                    if pool is None:
                        raise PoolError(f"The Dask pool '{self._name}' was deleted while it was starting.")
                    if pool.status in ("failed", "terminating"):
                        raise PoolError(f"The Dask pool '{self._name}' did not start: {pool.why}")
                    if pool.has_started:
                        return pool
                    self._progress = pool.why
                await asyncio.sleep(_pause(polls))
        finally:
            reporting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reporting

    async def _report_events(self) -> None:
        """Pass on what the service says about the start. Without it the start goes on all the same."""
        parser = EventStreamParser()
        retries = Retries(first=0.5, longest=5.0)
        while True:
            with contextlib.suppress(ServiceError):
                async with contextlib.aclosing(self._api.events(self._name, parser)) as events:
                    async for event in events:
                        if event.type in ("info", "error"):
                            self._say(event.data)
                        elif event.type in ("complete", "failed"):
                            return
            await retries.pause(None)


def _pause(attempts: int) -> float:
    return backoff(attempts, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)


async def delete_pool(api: PoolApi, name: str, digest: str) -> str:
    """Delete the pool with this certificate without waiting for its end, and no other pool of its name.

    Returns why that was not possible, else an empty text.
    """
    try:
        async with asyncio.timeout(_DELETION):
            await patiently(lambda: api.delete(name, digest), _DELETION)
    except (ServiceError, TimeoutError) as error:
        return str(error) or "no answer of the service"
    return ""
