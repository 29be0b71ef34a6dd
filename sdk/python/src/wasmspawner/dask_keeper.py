"""Keeps the number of workers of a Dask pool, within the scheduler's process.

The scheduler loads this file with `--preload`. The keeper tells the service how many workers the scheduler wants. The
service starts workers; when there are to be fewer, the keeper retires some, which moves their data to others first. A
retired worker ends with exit code 0. While the service is not reachable, the scheduler goes on with what it has.

The service mounts this file and `service_link.py` into the scheduler's pod, with `pool.json` and `token`.
"""

import asyncio
import json
import logging
import math
import threading
from pathlib import Path

import dask.config
from dask.utils import parse_timedelta
from tornado.ioloop import IOLoop, PeriodicCallback

if __package__:
    from .service_link import Reporter, Service, follow
else:
    from service_link import Reporter, Service, follow  # Dask imports preloaded files with their folder in `sys.path`

logger = logging.getLogger("distributed.scheduler.wasmspawner")

# The time between two checks, and for how many checks in a row a smaller number of workers is wanted before it is
# reported. Dask's own settings for adaptive clusters, which have the same defaults, have precedence.
INTERVAL_SECONDS = 1.0
CHECKS_BEFORE_SHRINKING = 3
# Checks that follow each other more closely would keep the scheduler from its work.
SHORTEST_INTERVAL_SECONDS = 0.05
# After workers could not be retired, because nobody could take their data.
CHECKS_AFTER_FAILURE = 10
# States of workers that are leaving already.
LEAVING = ("closing", "closed", "closing_gracefully", "failed")


def setting(name, understand, usual):
    """One of Dask's own settings for adaptive clusters; the usual value if there is none, or none that makes sense."""
    value = dask.config.get(f"distributed.adaptive.{name}", None)
    try:
        return usual if value is None else understand(value)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:  # a pool starts all the same
        logger.warning("the setting distributed.adaptive.%s is not understood and ignored: %s", name, error)
        return usual


def interval_seconds():
    """Seconds from one check to the next."""
    return max(setting("interval", parse_timedelta, INTERVAL_SECONDS), SHORTEST_INTERVAL_SECONDS)


def checks_before_shrinking():
    """For how many checks in a row a smaller number is wanted before it is reported."""
    return max(setting("wait-count", int, CHECKS_BEFORE_SHRINKING), 1)


class Wanted:
    """How many workers are wanted, which grows at once and shrinks only when fewer were wanted for several checks."""

    def __init__(self, checks=CHECKS_BEFORE_SHRINKING):
        self._checks = checks
        self._number = None
        self._lower = []

    def next(self, target, minimum, maximum):
        """The number for the next check, of which the scheduler's own target is this, between these bounds."""
        number = min(max(target, minimum), maximum)
        if self._number is None or number >= self._number or self._number > maximum:
            self._number, self._lower = number, []
            return self._number
        self._lower.append(number)
        if len(self._lower) >= self._checks:
            # The largest of them, as growth at once would bring that one back.
            self._number, self._lower = max(self._lower), []
        return self._number


def surplus(connected, target):
    """How many of the connected workers are to be retired. `target` is None until the service has said it."""
    return 0 if target is None else max(connected - target, 0)


# The group of a pool whose workers are all alike.
ONLY_GROUP = ""
# A task that never ran yet counts as this many seconds, as it does for Dask.
UNKNOWN_SECONDS = 0.5
# The share of a group's memory above which it grows, as for Dask.
FULL = 0.6


def group_of_worker(worker, groups):
    """The group of a worker, which has the group's name as a resource; the only group if the pool has no named ones."""
    resources = getattr(worker, "resources", None) or {}
    return next((group for group in groups if group in resources), groups[0] if groups == [ONLY_GROUP] else None)


def group_of_task(task, groups):
    """The group whose workers a task needs. One that needs no group counts for the first."""
    needed = task.resource_restrictions or {}
    return next((group for group in groups if group in needed), groups[0])


def group_targets(scheduler, groups):
    """How many workers each named group wants. It is Dask's own estimate, with the tasks and workers of one group."""
    target_seconds = setting("target-duration", parse_timedelta, 5.0)
    waiting = {group: [] for group in groups}
    for tasks in (scheduler.queued, scheduler.unrunnable):
        for task in tasks:
            waiting[group_of_task(task, groups)].append(task)
    workers = {group: [] for group in groups}
    for worker in scheduler.workers.values():
        if (group := group_of_worker(worker, groups)) is not None:
            workers[group].append(worker)
    closable = None
    targets = {}
    for group in groups:
        present = workers[group]
        target = wanted_workers(present, waiting[group], target_seconds)
        if target < len(present):
            closable = set(scheduler.workers_to_close()) if closable is None else closable
            target = len(present) - sum(worker.address in closable for worker in present)
        targets[group] = target
    return targets


def wanted_workers(present, waiting, target_seconds):
    """How many workers are wanted for the tasks that wait and those that these workers have."""
    seconds = sum(worker.occupancy for worker in present) + sum(map(expected_seconds, waiting))
    tasks = len(waiting) + sum(len(worker.processing) for worker in present)
    # A few long tasks cannot use many threads.
    threads = min(math.ceil(seconds / target_seconds), tasks)
    if not present:
        return max(threads, 1) if waiting else 0
    used, limit = sum(worker.nbytes for worker in present), sum(worker.memory_limit for worker in present)
    for_memory = 2 * len(present) if limit and used > FULL * limit else 0
    per_worker = sum(worker.nthreads for worker in present) / len(present)
    return max(math.ceil(threads / per_worker), for_memory)


def expected_seconds(task):
    """How long a task is expected to run."""
    average = task.prefix.duration_average if task.prefix else -1
    return average if average >= 0 else UNKNOWN_SECONDS


class GroupKeeper:
    """What the keeper knows of one group of workers."""

    def __init__(self, order):
        self.order = order
        self.wanted = Wanted(checks_before_shrinking())
        self.retirement = None  # the newest task that retires workers
        self.checks_until_retirement = 0

    @property
    def may_retire(self):
        """True if no retirement is under way, and none has failed just now."""
        return not self.checks_until_retirement and (self.retirement is None or self.retirement.done())

    @property
    def is_fixed(self):
        """True if the group has as many workers as its client says."""
        return self.order["minimum"] == self.order["maximum"]


class Keeper:
    """Compares what the scheduler has with what it wants and with what the service allows, once per interval."""

    def __init__(self, scheduler, report):
        self._scheduler = scheduler
        self._report = report
        self._reported = None
        self._groups = {}  # by name, in the order of the last `workers` event of the service
        self._timer = PeriodicCallback(self.check, interval_seconds() * 1000)

    def start(self):
        """Begin to check."""
        self._timer.start()

    def stop(self):
        """End; workers that are just being retired are left to the scheduler."""
        self._timer.stop()

    def on_order(self, order):
        """Take the service's newest numbers, by group."""
        before, self._groups = self._groups, {}
        for name, numbers in order.items():
            group = self._groups[name] = before.get(name) or GroupKeeper(numbers)
            group.order, group.checks_until_retirement = numbers, 0

    def check(self):
        """Report what has changed, and begin to retire workers that are too many."""
        if not self._groups or self._scheduler.status.name != "running":
            return
        try:
            connected = self._connected()
            targets = self._targets()
            states = {
                name: {
                    "ready": len(connected[name]),
                    "wanted": group.wanted.next(targets[name], group.order["minimum"], group.order["maximum"]),
                }
                for name, group in self._groups.items()
            }
            report = states.get(ONLY_GROUP) or {"groups": [{"name": name, **state} for name, state in states.items()]}
            if report != self._reported:
                self._reported = report
                self._report(report)
            for name, group in self._groups.items():
                group.checks_until_retirement = max(group.checks_until_retirement - 1, 0)
                number = surplus(len(connected[name]), group.order["target"])
                if number and group.may_retire:
                    group.retirement = asyncio.ensure_future(self._retire(name, number))
        except Exception:
            logger.exception("the number of the pool's workers could not be checked; the next check follows")

    def _group_of(self, worker):
        return group_of_worker(worker, list(self._groups))

    def _connected(self):
        """The connected workers of each group."""
        connected = {name: [] for name in self._groups}
        for worker in self._scheduler.workers.values():
            if worker.status.name not in LEAVING and (name := self._group_of(worker)) is not None:
                connected[name].append(worker)
        return connected

    def _targets(self):
        """How many workers each group wants."""
        if all(group.is_fixed for group in self._groups.values()):
            wanted = {}
        elif ONLY_GROUP in self._groups:
            wanted = {ONLY_GROUP: self._scheduler.adaptive_target()}
        else:
            wanted = group_targets(self._scheduler, list(self._groups))
        return {
            name: group.order["minimum"] if group.is_fixed else wanted[name] for name, group in self._groups.items()
        }

    def _candidates(self, name, number):
        """The workers of a group that cost least to retire."""
        # `workers_to_close` also counts and names workers that are leaving already, and those of all groups.
        workers = self._scheduler.workers
        leaving = {address for address, w in workers.items() if w.status.name in LEAVING}
        others = {address for address, w in workers.items() if self._group_of(w) != name}
        candidates = self._scheduler.workers_to_close(n=number + len(leaving | others))
        return [address for address in candidates if address not in leaving | others][:number]

    async def _retire(self, name, number):
        try:
            chosen = self._candidates(name, number)
            retired = await self._scheduler.retire_workers(workers=chosen, close_workers=True, remove=True)
        except Exception:
            self._pause(name)
            logger.exception("workers could not be retired; it is tried again")
            return
        if len(retired) < number:
            self._pause(name)
            logger.warning(
                "%d of %d workers stay for now: they run long tasks, or hold data that no other worker can take",
                number - len(retired),
                number,
            )

    def _pause(self, name):
        if name in self._groups:
            self._groups[name].checks_until_retirement = CHECKS_AFTER_FAILURE


def parse_order(data):
    """The numbers of a `workers` event, by group. Raises `ValueError` if they are not understood."""
    try:
        event = json.loads(data)
        groups = [(group["name"], group) for group in event.get("groups") or ()] or [(ONLY_GROUP, event)]
        order = {
            str(name): {key: int(numbers[key]) for key in ("minimum", "maximum", "target")} for name, numbers in groups
        }
    except (AttributeError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError("there are no numbers") from error
    for numbers in order.values():
        if not 0 <= numbers["minimum"] <= numbers["maximum"] or numbers["target"] < 0:
            raise ValueError("the numbers contradict each other")
    return order


_keepers = {}


def dask_setup(scheduler):
    """Start the keeper. Dask calls this in the scheduler's event loop."""
    folder = Path(__file__).absolute().parent
    pool = json.loads((folder / "pool.json").read_text("utf-8"))
    reporter = Reporter(Service(pool["url"], "/scheduler", folder / "token", "workers", logger.warning))
    keeper = _keepers[scheduler.id] = Keeper(scheduler, reporter.report)
    loop = IOLoop.current()

    def on_event(name, data):
        if name != "workers":
            return
        try:
            order = parse_order(data)
        except ValueError:
            logger.warning("an event '%s' of the service is not understood and ignored", name)
        else:
            loop.add_callback(keeper.on_order, order)

    service = Service(pool["url"], "/scheduler", folder / "token", "workers", logger.warning)
    threading.Thread(target=reporter.run, daemon=True).start()
    threading.Thread(target=follow, args=(service, reporter.repeat, on_event), daemon=True).start()
    keeper.start()


def dask_teardown(scheduler):
    """Stop the keeper."""
    keeper = _keepers.pop(scheduler.id, None)
    if keeper is not None:
        keeper.stop()
