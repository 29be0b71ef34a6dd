"""Starting a kernel, and starting it anew."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from traitlets.log import get_logger

from .errors import Refused, ServiceError, Unreachable
from .kernel_api import KernelApi, KernelState
from .kernel_errors import KernelNotAllowed, KernelNotStarted
from .lab_service import token_refused
from .retries import patiently

_T = TypeVar("_T")
_POLL_INTERVAL = 0.2
# How long requests are repeated while the service is not reachable; its restart takes seconds.
_OUTAGE = 15.0
# How long the end of a kernel waits for the service to accept the deletion.
_DELETION = 5.0


class KernelStart:
    """One start or restart of a kernel, within `timeout` seconds. If it fails or is cancelled, the kernel is deleted.

    `created` tells that the service has the kernel already.
    """

    def __init__(self, api: KernelApi, timeout: float, *, created: bool = False, restart: bool = False) -> None:
        self._api = api
        self._timeout = timeout
        self._created = created
        self._restart = restart
        self._progress = "the service has not accepted the kernel"
        # True if a start failed and the kernel could not be deleted: the service may have it still.
        self.left_behind = False

    async def run(self, request: Mapping[str, Any]) -> KernelState:
        """Start the kernel and wait until its process runs.

        Raises `PermissionError` if the user may not start this kernel, and `RuntimeError` with the service's reason if
        it does not start.
        """
        try:
            async with asyncio.timeout(self._timeout):
                if self._created:
                    return await self._start_anew(request)
                return await self._until_started(await self._create(request))
        except BaseException as error:
            if self._created:
                self.left_behind = not await delete_kernel(self._api)
            if isinstance(error, TimeoutError):
                late = f"The kernel did not start within {self._timeout:g} seconds: {self._progress}."
                raise KernelNotStarted(late) from error
            if isinstance(error, ServiceError):
                raise _for_user(error) from error
            raise

    async def _start_anew(self, request: Mapping[str, Any]) -> KernelState:
        """Start a new process in the kernel's pod. If the pod cannot do that, make another pod."""
        former = await self._patiently(self._api.get)
        if former is not None and former.status == "running" and former.process in ("running", "ended"):
            kernel = await self._patiently(self._api.restart)
            if kernel is not None:
                return await self._until_started(kernel, after=former.number)
        await self._patiently(self._api.delete)
        while await self._patiently(self._api.get) is not None:
            self._progress = "the kernel's former pod is still being deleted"
            await asyncio.sleep(_POLL_INTERVAL)
        self._created = False
        return await self._until_started(await self._create(request))

    async def _create(self, request: Mapping[str, Any]) -> KernelState:
        async def attempt() -> KernelState:
            try:
                kernel = await self._api.create(request)
            except Unreachable as error:
                self._created = self._created or not error.unsent
                raise
            self._created = True
            return kernel

        absent = False
        while True:
            try:
                return await self._patiently(attempt)
            except Refused as error:
                if error.status != 409:
                    raise
                kernel = await self._patiently(self._api.get)
                if kernel is None:
                    # Either the kernel in question was deleted just now, or the lab is not running.
                    if absent:
                        raise
                    absent = True
                elif kernel.status != "terminating":
                    if not self._created:
                        raise
                    return kernel  # by an earlier attempt whose answer was lost
            await asyncio.sleep(_POLL_INTERVAL)

    async def _until_started(self, kernel: KernelState | None, after: int = 0) -> KernelState:
        while True:
            if kernel is None:
                raise KernelNotStarted("The kernel was deleted while it was starting.")
            reason = f" ({kernel.reason})" if kernel.reason else ""
            if kernel.status in ("failed", "terminating"):
                raise KernelNotStarted(f"The kernel did not start: {kernel.message or kernel.status}{reason}")
            # A restarted kernel whose process ends at once is dead for Jupyter, which counts such restarts and gives up
            # after a few. It does not count restarts that raise an error.
            if kernel.ended_with is not None and not self._restart:
                raise KernelNotStarted(f"The kernel's program ended with exit code {kernel.ended_with}.")
            if kernel.has_started(after):
                return kernel
            if after and kernel.process in ("running", "ended") and kernel.number <= after:
                # The service was restarted before it could pass on the command. To repeat it does no harm.
                await self._patiently(self._api.restart)
            stage = f"stage '{kernel.stage or kernel.status}'"
            self._progress = ": ".join(filter(None, (stage, kernel.message))) + reason
            await asyncio.sleep(_POLL_INTERVAL)
            try:
                kernel = await self._api.get()
            except Unreachable as error:
                self._progress = f"{stage}; {error}"

    async def _patiently(self, call: Callable[[], Awaitable[_T]]) -> _T:
        def note(error: Unreachable) -> None:
            self._progress = str(error)

        return await patiently(call, _OUTAGE, note)


async def delete_kernel(api: KernelApi) -> bool:
    """Delete the kernel without waiting for its end. False, and a line in the log, if that is not possible."""
    try:
        async with asyncio.timeout(_DELETION):
            await patiently(api.delete, _DELETION)
    except (ServiceError, TimeoutError) as error:
        get_logger().warning("a kernel was not deleted and runs on until its lab ends: %s", error or "no answer")
        return False
    return True


def _for_user(error: ServiceError) -> Exception:
    if not isinstance(error, Refused):
        return KernelNotStarted(f"The service that starts kernels cannot be reached: {error}")
    if error.status == 401:
        return KernelNotAllowed(token_refused(error.text))
    if error.status == 403:
        return KernelNotAllowed(error.text or "The service that starts kernels does not allow this kernel.")
    return KernelNotStarted(f"The service did not start the kernel: {error.text or error}")
