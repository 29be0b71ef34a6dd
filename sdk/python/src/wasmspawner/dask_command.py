"""The command `wasmspawner dask`: lists, scales and stops the Dask pools of the lab in which it runs."""

import argparse
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from .command_error import CommandError
from .dask.pool_errors import PoolError, PoolNotAllowed
from .dask.pool_size import parse_size
from .dask.pool_state import PoolState
from .dask.pools import list_pools, scale_pool, stop_pool
from .lab_service import NoService

_T = TypeVar("_T")
_HEADINGS = ("NAME", "STATUS", "READY", "SCALE", "IDLE END", "SCHEDULER")


def add_topic(topics: Any) -> None:
    """Add the verbs of this topic to the command's parser."""
    dask = topics.add_parser("dask", help="pools of Dask workers beside this lab")
    verbs = dask.add_subparsers(required=True, metavar="VERB")

    listing = verbs.add_parser("list", help="list the pools, with the workers that they have and want")
    listing.set_defaults(run=list_all)

    scaling = verbs.add_parser("scale", help="change the number of a pool's workers")
    scaling.add_argument("name", metavar="NAME")
    scaling.add_argument(
        "size", metavar="N|MIN-MAX", help="a number, or bounds between which the scheduler decides (0-8)"
    )
    scaling.add_argument("--group", default="", help="the group of workers, if the pool has groups")
    scaling.set_defaults(run=scale)

    stopping = verbs.add_parser("stop", help="stop a pool, with all data of its workers")
    stopping.add_argument("name", metavar="NAME")
    stopping.set_defaults(run=stop)


def list_all(_options: argparse.Namespace) -> None:
    """Print the pools."""
    pools = _ask(list_pools)
    if not pools:
        print("This lab has no Dask pools; `WasmSpawnerCluster()` of wasmspawner.dask starts one.", file=sys.stderr)
        return
    rows = [_HEADINGS, *(row for pool in pools for row in _rows(pool))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for pool in pools:
        if text := pool.workers_message or (pool.why if pool.status == "failed" else ""):
            print(f"{pool.name}: {text}")


def _rows(pool: PoolState) -> list[tuple[str, ...]]:
    idle_end = "-" if pool.idle_timeout is None else f"{pool.idle_timeout} s"
    ready = f"{pool.ready}/{pool.desired}"
    groups = [(f"  {group.name}", "", f"{group.ready}/{group.desired}", group.scaling, "", "") for group in pool.groups]
    return [(pool.name, pool.status, ready, pool.scaling, idle_end, pool.scheduler_address or "-"), *groups]


def scale(options: argparse.Namespace) -> None:
    """Change the number of a pool's workers."""
    try:
        size = parse_size(options.size)
    except ValueError as error:
        raise CommandError(str(error)) from error
    pool = _ask(lambda: scale_pool(options.name, size, options.group))
    group = next((group for group in pool.groups if group.name == options.group), None)
    what = f"The pool {pool.name}" if group is None else f"The group {group.name} of the pool {pool.name}"
    scaled = pool if group is None else group
    print(f"{what} is to have {scaled.scaling} workers; {scaled.ready} are ready.")
    if pool.note:
        print(pool.note)


def stop(options: argparse.Namespace) -> None:
    """Stop a pool."""
    _ask(lambda: stop_pool(options.name))
    print(f"The pool {options.name} is being stopped.")


def _ask(call: Callable[[], _T]) -> _T:
    try:
        return call()
    except (NoService, PoolError, PoolNotAllowed) as error:
        raise CommandError(str(error)) from error
