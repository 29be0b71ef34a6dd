"""Stopping a lab."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from .client import ServiceClient
from .errors import Refused, ServiceError
from .lab import Lab
from .lab_error import LabError, for_user
from .lab_state import LabState
from .progress import ProgressLog
from .retries import Retries


class LabStop:
    """Stops one lab: requests a stop, follows its events and reads the lab, repeatedly until the lab is gone.

    Lost answers, ended streams and an unreachable service are tolerated for `timeout` seconds; then the last error is
    raised. `token` is called for every request, because the Hub's token may change.
    """

    def __init__(self, client: ServiceClient, lab: Lab, token: Callable[[], str], timeout: float) -> None:
        self._client = client
        self._lab = lab
        self._token = token
        self._timeout = timeout
        self._trouble = LabError(504, "It is still shutting down.", reason="still_stopping")

    async def run(self, log: ProgressLog) -> None:
        """Stop the lab. Raises `LabError` (504) if it does not stop, `Refused` if it may not be stopped."""
        await self._in_time(log, ask=True)

    async def wait(self) -> None:
        """Wait for the end of a stop that is under way. Raises what `run` does."""
        await self._in_time(ProgressLog(), ask=False)

    async def _in_time(self, log: ProgressLog, *, ask: bool) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._until_stopped(log, ask=ask)
        except TimeoutError as error:
            late = f"The lab did not stop within {self._timeout:.0f} seconds."
            message = f"{late} {self._trouble.jupyterhub_message}"
            raise LabError(
                504, message, reason="still_stopping", log_message=f"{late} {self._trouble.log_message}"
            ) from error

    async def _until_stopped(self, log: ProgressLog, *, ask: bool) -> None:
        retries = Retries(longest=5.0)
        while True:
            trouble = None
            try:
                if ask and not await self._client.delete(self._lab, self._token()):
                    return
                await self._follow(log)
            except ServiceError as error:
                trouble = self._put_up_with(error)
            try:
                lab = await self._client.lab_now(self._lab, self._token())
                if lab is None or lab.stopped:
                    return
                # If the lab is being stopped already, only follow the events.
                ask = lab.status != "terminating"
                self._note(lab, log)
            except ServiceError as error:
                trouble = self._put_up_with(error)
            await retries.pause(trouble)
            log = ProgressLog()  # a stream that is opened again repeats events that were shown already

    async def _follow(self, log: ProgressLog) -> None:
        time_limit = self._client.options.retry_for
        try:
            async with aclosing(self._client.events(self._lab, self._token(), give_up_after=time_limit)) as batches:
                async for batch in batches:
                    if await log.apply(batch):
                        return
        except Refused as error:
            if not error.no_lab:  # the record was deleted with the lab before the stream was opened
                raise

    def _put_up_with(self, error: ServiceError) -> ServiceError:
        """Remember the error, or raise it if another attempt cannot succeed."""
        if isinstance(error, Refused) and not error.may_pass:
            raise error
        self._trouble = for_user(error, "the last attempt")
        return error

    def _note(self, lab: LabState, log: ProgressLog) -> None:
        why = log.failure if log.failed else lab.message or f"It is still {lab.status}."
        self._trouble = LabError(504, why, reason="still_stopping")
