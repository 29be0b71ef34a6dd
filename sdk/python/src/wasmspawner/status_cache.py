"""The states of all labs of a Hub, shared by all polls."""

import asyncio
import math
import weakref
from collections.abc import Callable
from typing import ClassVar

from .client import MAX_LIST_BYTES, ServiceClient
from .errors import ServiceError
from .lab import Lab
from .lab_error import LabError
from .lab_state import NO_LAB, LabState
from .outage_log import OutageLog
from .status_report import StatusReport
from .web_address import WebAddress

# The service may be replaced by a version that has this route while the Hub is running.
_ASK_FOR_THE_LIST_AGAIN_AFTER = 300.0
# Labs of a list that are read before the Hub answers other requests; about two milliseconds.
_SLICE = 250


class StatusCache:
    """The states of labs, according to a list of all labs that is requested once per interval for all polls.

    The list is trusted only for labs that are alive. If it does not contain a lab, or the lab has failed, the lab
    itself is read: a lab must not be reported as gone because a list is out of date.
    """

    _shared: ClassVar[weakref.WeakKeyDictionary[ServiceClient, dict[str, "StatusCache"]]] = weakref.WeakKeyDictionary()

    def __init__(self, client: ServiceClient) -> None:
        self._client = client
        self._labs: dict[Lab, LabState] = {}
        self._revision = ""
        self._size = 0  # bytes of the last complete list and of all changes since
        self._asked_at = -math.inf
        self._failed = False
        self._refreshing: asyncio.Task[None] | None = None
        self._no_list_until = -math.inf
        self._list_log = OutageLog("The states of all labs")
        self._lab_log = OutageLog("The state of a lab")

    @classmethod
    def shared(cls, client: ServiceClient, credential: str) -> "StatusCache":
        """The cache that is shared by all users of this client with the same credential (a token, or the file with
        it)."""
        caches = cls._shared.setdefault(client, {})
        if credential not in caches:
            caches[credential] = cls(client)
        return caches[credential]

    async def state(self, lab: Lab, token: Callable[[], str], since: float = -math.inf) -> LabState | None:
        """The lab's state (`NO_LAB` if it does not exist), according to a request that was made after `since` (in the time
        of the event loop).

        None if that is unknown, because the service is not reachable or its answer has an unknown form.
        """
        if self._has_list():
            await self._refresh_unless_after(max(since, self._now() - self._client.options.status_interval), token)
            if self._failed:
                return None
            if self._has_list() and (listed := self._labs.get(lab)) is not None and listed.alive:
                return listed
        return await self._ask_about(lab, token)

    def listed_address(self, lab: Lab) -> WebAddress | None:
        """The address of a running lab in the last list; None if it is not listed or has none."""
        listed = self._labs.get(lab)
        return listed.address if listed is not None and listed.status == "running" else None

    async def _ask_about(self, lab: Lab, token: Callable[[], str]) -> LabState | None:
        try:
            state = await self._client.polled_lab(lab, token())
        except (ServiceError, LabError) as error:
            self._lab_log.failed(error)
            return None
        self._lab_log.succeeded()
        return state or NO_LAB

    # The list

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _has_list(self) -> bool:
        return self._now() >= self._no_list_until

    async def _refresh_unless_after(self, instant: float, token: Callable[[], str]) -> None:
        """Return the outcome of a request that was made at `instant` or later: the last one, or a new one for all
        callers."""
        while self._asked_at < instant:
            if self._refreshing is None:
                self._refreshing = asyncio.create_task(self._refresh(token))
            await asyncio.shield(self._refreshing)  # if this poll is cancelled, the request continues for the others

    async def _refresh(self, token: Callable[[], str]) -> None:
        asked_at = self._now()
        try:
            await self._update(token())
            self._failed = False
            self._list_log.succeeded()
        except (ServiceError, LabError) as error:
            self._failed = True
            self._list_log.failed(error)
        finally:
            self._asked_at = asked_at
            self._refreshing = None

    async def _update(self, token: str) -> None:
        report = await self._client.lab_status(token, self._revision)
        if report is None:
            self._no_list_until = self._now() + _ASK_FOR_THE_LIST_AGAIN_AFTER
            self._labs, self._revision = {}, ""
            return
        self._labs = await self._merged(report)
        self._size = report.size + (0 if report.complete else self._size)
        # Changes without end would fill the memory, so the next answer is then a complete list again.
        self._revision = report.revision if self._size <= MAX_LIST_BYTES else ""

    async def _merged(self, report: StatusReport) -> dict[Lab, LabState]:
        labs = {} if report.complete else self._labs
        for number, (lab, state) in enumerate(report.labs(), start=1):
            if state is None:
                labs.pop(lab, None)
            else:
                labs[lab] = state
            if number % _SLICE == 0:
                await asyncio.sleep(0)
        return labs
