"""Keeps the number of workers of a Dask pool, within the scheduler's process.

The scheduler loads this file with `--preload`. The keeper tells the service how many workers the scheduler wants. The
service starts workers; when there are to be fewer, the keeper retires some, which moves their data to others first. A
retired worker ends with exit code 0. While the service is not reachable, the scheduler goes on with what it has.

The service mounts this file and `service_link.py` into the scheduler's pod, with `pool.json` and `token`.
"""

import asyncio
import json
import logging
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


class Keeper:
    """Compares what the scheduler has with what it wants and with what the service allows, once per interval."""

    def __init__(self, scheduler, report):
        self._scheduler = scheduler
        self._report = report
        self._wanted = Wanted(checks_before_shrinking())
        self._reported = None
        self._order = None  # the last `workers` event of the service
        self._retirement = None  # the newest task that retires workers
        self._checks_until_retirement = 0
        self._timer = PeriodicCallback(self.check, interval_seconds() * 1000)

    def start(self):
        """Begin to check."""
        self._timer.start()

    def stop(self):
        """End; workers that are just being retired are left to the scheduler."""
        self._timer.stop()

    def on_order(self, order):
        """Take the service's newest numbers."""
        self._order = order
        self._checks_until_retirement = 0

    def check(self):
        """Report what has changed, and begin to retire workers that are too many."""
        if self._order is None or self._scheduler.status.name != "running":
            return
        try:
            connected = [w for w in self._scheduler.workers.values() if w.status.name not in LEAVING]
            minimum, maximum = self._order["minimum"], self._order["maximum"]
            target = minimum if minimum == maximum else self._scheduler.adaptive_target()
            state = {"ready": len(connected), "wanted": self._wanted.next(target, minimum, maximum)}
            if state != self._reported:
                self._reported = state
                self._report(state)
            self._checks_until_retirement = max(self._checks_until_retirement - 1, 0)
            number = surplus(len(connected), self._order["target"])
            if number and not self._checks_until_retirement and (self._retirement is None or self._retirement.done()):
                self._retirement = asyncio.ensure_future(self._retire(number))
        except Exception:
            logger.exception("the number of the pool's workers could not be checked; the next check follows")

    async def _retire(self, number):
        try:
            # `workers_to_close` also counts and names workers that are leaving already.
            leaving = {address for address, w in self._scheduler.workers.items() if w.status.name in LEAVING}
            candidates = self._scheduler.workers_to_close(n=number + len(leaving))
            chosen = [address for address in candidates if address not in leaving][:number]
            retired = await self._scheduler.retire_workers(workers=chosen, close_workers=True, remove=True)
        except Exception:
            self._checks_until_retirement = CHECKS_AFTER_FAILURE
            logger.exception("workers could not be retired; it is tried again")
            return
        if len(retired) < number:
            self._checks_until_retirement = CHECKS_AFTER_FAILURE
            logger.warning(
                "%d of %d workers stay for now: they run long tasks, or hold data that no other worker can take",
                number - len(retired),
                number,
            )


def parse_order(data):
    """The numbers of a `workers` event. Raises `ValueError` if they are not understood."""
    try:
        order = json.loads(data)
        order = {name: int(order[name]) for name in ("minimum", "maximum", "target")}
    except (KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError("there are no numbers") from error
    if not 0 <= order["minimum"] <= order["maximum"] or order["target"] < 0:
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
