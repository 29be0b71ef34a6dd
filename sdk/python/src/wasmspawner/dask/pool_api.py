"""The client of the service's REST API for the Dask pools of a lab."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from ..child_requests import REQUEST_TIMEOUT, ChildRequests, is_gone
from ..errors import Refused
from ..lab import path_segment
from ..lab_service import LabService
from ..sse import Event, EventStreamParser
from .pool_state import PoolState

SENDER = "wasmspawner-dask"
# How long requests are repeated while the service is not reachable; its restart takes seconds.
OUTAGE = 15.0


class PoolApi:
    """Requests about the pools of one lab, each in one attempt. They raise `Refused` or `Unreachable`."""

    def __init__(self, service: LabService) -> None:
        self._requests = ChildRequests(f"{service.lab_url}/dask-pools", service.read_token, SENDER)

    async def names(self, *, time_limit: float = REQUEST_TIMEOUT) -> list[str]:
        """The names of the lab's pools. There are none where the service does not know the lab."""
        try:
            answer = await self._requests.send("GET", time_limit=time_limit)
        except Refused as error:
            if is_gone(error):
                return []
            raise
        return answer.decode(lambda names: [str(name) for name in names])

    async def create(self, name: str, request: Mapping[str, Any]) -> None:
        """Begin to start a pool. Raises `Refused` with status 409 if there is one of that name already."""
        await self._requests.send("POST", _path(name), request)

    async def get(self, name: str, *, time_limit: float = REQUEST_TIMEOUT) -> PoolState | None:
        """The pool's state; None if there is no such pool."""
        try:
            answer = await self._requests.send("GET", _path(name), time_limit=time_limit)
            return answer.decode(PoolState.of)
        except Refused as error:
            if is_gone(error):
                return None
            raise

    async def scale(self, name: str, workers: int | Mapping[str, int], group: str = "") -> PoolState | None:
        """Set the number of workers, or its bounds, of the pool or of one of its groups. None if there is no such pool."""
        body = {"workers": workers, **({"group": group} if group else {})}
        try:
            answer = await self._requests.send("POST", _path(name, "/scale"), body)
            return answer.decode(PoolState.of)
        except Refused as error:
            if is_gone(error):
                return None
            raise

    async def delete(self, name: str, digest: str = "") -> bool:
        """Begin to delete the pool. False if there is no such pool; with a digest, none with that certificate."""
        headers = {"If-Match": f'"{digest}"'} if digest else {}
        try:
            await self._requests.send("DELETE", _path(name), headers=headers)
        except Refused as error:
            if is_gone(error) or error.status == 412:
                return False
            raise
        return True

    def events(self, name: str, parser: EventStreamParser) -> AsyncGenerator[Event, None]:
        """The events of the pool's start, or of its end, as long as this one connection lasts."""
        return self._requests.events(_path(name, "/events"), parser)


def _path(name: str, verb: str = "") -> str:
    return f"/{path_segment(name)}{verb}"
