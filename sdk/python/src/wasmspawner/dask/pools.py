"""The Dask pools of the lab, for synchronous callers: from a notebook, a command, or any thread."""

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ..errors import ServiceError
from ..lab_service import LabService
from ..retries import patiently
from .certificate import forget_certificate
from .pool_api import OUTAGE, PoolApi
from .pool_errors import PoolUnknown, for_user
from .pool_state import PoolState

_T = TypeVar("_T")


def list_pools() -> list[PoolState]:
    """The pools of this lab, sorted by name."""
    return _complete(_list_pools(PoolApi(LabService.of_environment())), "list the Dask pools")


def scale_pool(name: str, workers: int | Mapping[str, int], group: str = "") -> PoolState:
    """Set the number of a pool's workers, or its bounds as `{"minimum": 0, "maximum": 8}`, in one group if it has groups.

    The `note` of the result says if a limit changed the number. Raises `PoolUnknown`.
    """
    api = PoolApi(LabService.of_environment())
    pool = _complete(patiently(lambda: api.scale(name, workers, group), OUTAGE), f"scale the Dask pool '{name}'")
    if pool is None:
        raise PoolUnknown(unknown(name))
    return pool


def stop_pool(name: str) -> None:
    """Stop a pool, with all data of its workers. Raises `PoolUnknown`."""
    service = LabService.of_environment()
    api = PoolApi(service)
    found = _complete(patiently(lambda: api.delete(name), OUTAGE), f"stop the Dask pool '{name}'")
    forget_certificate(service.lab, name)
    if not found:
        raise PoolUnknown(unknown(name))


def unknown(name: str, names: list[str] | None = None) -> str:
    """The text of an error that there is no such pool; `names` are those that exist."""
    known = f" This lab has the pools {', '.join(names)}." if names else ""
    return f"There is no Dask pool '{name}': it was stopped, or ended because it was idle.{known}"


async def _list_pools(api: PoolApi) -> list[PoolState]:
    names = await patiently(api.names, OUTAGE)
    states = await asyncio.gather(*(patiently(lambda n=name: api.get(n), OUTAGE) for name in names))
    return [state for state in states if state is not None]


def _complete(coroutine: Coroutine[Any, Any, _T], attempt: str) -> _T:
    """Run to the end in a thread of its own, because the caller's may have a running event loop, as notebooks have."""
    with ThreadPoolExecutor(1) as executor:
        try:
            return executor.submit(asyncio.run, coroutine).result()
        except ServiceError as error:
            raise for_user(error, attempt) from error
