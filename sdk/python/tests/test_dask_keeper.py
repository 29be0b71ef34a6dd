"""The keeper's decisions, with a stand-in of Dask's scheduler; real schedulers are in test_dask_pool.py."""

import asyncio
import json
import shutil
import venv
from types import SimpleNamespace

import dask.config
import pytest

from wasmspawner import dask_keeper, dask_pod
from wasmspawner.dask_keeper import Keeper, Wanted, checks_before_shrinking, interval_seconds, parse_order, surplus


@pytest.mark.parametrize(
    ("targets", "wanted"),
    [
        ([3, 5, 5, 8], [3, 5, 5, 8]),  # growth at once
        ([5, 1, 1, 1, 1], [5, 5, 5, 1, 1]),  # shrinking after three checks
        ([5, 1, 5, 1, 1, 5], [5, 5, 5, 5, 5, 5]),  # no flapping
        ([5, 1, 3, 2, 0, 0, 0], [5, 5, 5, 3, 3, 3, 0]),  # to the largest of the three
        ([5, 1, 1, 6], [5, 5, 5, 6]),
        ([0, 99, 99], [2, 8, 8]),  # within the bounds
        ([8, 0, 0, 0], [8, 8, 8, 2]),
    ],
)
def test_the_number_grows_at_once_and_shrinks_late(targets, wanted):
    decision = Wanted()
    bounds = (0, 10) if wanted[0] not in (2, 8) else (2, 8)
    assert [decision.next(target, *bounds) for target in targets] == wanted


def test_new_bounds_hold_at_once():
    decision = Wanted()
    assert [decision.next(6, 0, 8), decision.next(6, 0, 4), decision.next(0, 5, 8), decision.next(2, 2, 2)] == [
        6,
        4,
        5,
        2,
    ]


@pytest.mark.parametrize(
    ("interval", "wait_count", "seconds", "checks"),
    [
        ("5 s", 12, 5.0, 12),
        ("100ms", "2", 0.1, 2),
        (2, 1, 2.0, 1),
        ("0s", 0, 0.05, 1),  # not without a pause
        ("often", "many", 1.0, 3),
        ([], [], 1.0, 3),
        (None, None, 1.0, 3),
    ],
)
def test_the_settings_of_dask_s_adaptive_clusters_hold(interval, wait_count, seconds, checks):
    with dask.config.set({"distributed.adaptive.interval": interval, "distributed.adaptive.wait-count": wait_count}):
        assert (interval_seconds(), checks_before_shrinking()) == (seconds, checks)


def test_a_pool_whose_settings_say_so_shrinks_sooner():
    decision = Wanted(checks=2)
    assert [decision.next(target, 0, 8) for target in (5, 1, 1)] == [5, 5, 1]


def test_without_settings_of_dask_the_keeper_s_own_hold(monkeypatch):
    assert (dask_keeper.INTERVAL_SECONDS, dask_keeper.CHECKS_BEFORE_SHRINKING) == (1, 3)
    monkeypatch.setattr(dask.config, "config", {})
    assert (interval_seconds(), checks_before_shrinking()) == (1, 3)


@pytest.mark.parametrize(("connected", "target", "number"), [(4, 2, 2), (2, 4, 0), (3, 3, 0), (3, 0, 3), (3, None, 0)])
def test_workers_above_the_target_are_too_many(connected, target, number):
    assert surplus(connected, target) == number


@pytest.mark.parametrize(
    "data",
    ["", "[]", "{}", '{"minimum": 1, "maximum": 0, "target": 1}', '{"minimum": 0, "maximum": 1, "target": -1}', None],
)
def test_an_order_that_makes_no_sense_is_not_followed(data):
    with pytest.raises((ValueError, KeyError, TypeError)):
        parse_order(data)


class Scheduler:
    """Has workers by name, and retires those that are not `stuck` when the test says so."""

    def __init__(self, *names):
        self.status = SimpleNamespace(name="running")
        self.workers = {name: SimpleNamespace(status=SimpleNamespace(name="running")) for name in names}
        self.stuck, self.target, self.retired = set(), 0, []
        self.may_retire = asyncio.Event()
        self.may_retire.set()

    def adaptive_target(self):
        return self.target

    def workers_to_close(self, n):
        return list(self.workers)[:n]

    async def retire_workers(self, workers, close_workers, remove):
        assert close_workers
        assert remove
        self.retired.append(workers)
        for name in workers:
            self.workers[name].status = SimpleNamespace(name="closing_gracefully")
        await self.may_retire.wait()
        for name in workers:
            if name in self.stuck:
                self.workers[name].status = SimpleNamespace(name="running")
            else:
                del self.workers[name]
        return {name: {} for name in workers if name not in self.stuck}


def numbers(minimum, maximum, target):
    return {"minimum": minimum, "maximum": maximum, "target": target}


def order(minimum, maximum, target):
    return {"": numbers(minimum, maximum, target)}


async def checked(keeper, times=1):
    for _ in range(times):
        keeper.check()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_changes_are_reported_once_and_nothing_before_the_service_has_spoken():
    reports = []
    scheduler = Scheduler("a", "b")
    keeper = Keeper(scheduler, reports.append)
    await checked(keeper)
    assert reports == []
    keeper.on_order(order(2, 2, 2))
    await checked(keeper, 3)
    keeper.on_order(order(0, 8, 2))
    scheduler.target = 5
    await checked(keeper, 2)
    assert reports == [{"ready": 2, "wanted": 2}, {"ready": 2, "wanted": 5}]


async def test_one_retirement_runs_at_a_time_and_those_who_leave_are_not_counted():
    reports = []
    scheduler = Scheduler("a", "b", "c")
    scheduler.may_retire.clear()
    keeper = Keeper(scheduler, reports.append)
    keeper.on_order(order(2, 2, 2))
    await checked(keeper, 3)
    assert scheduler.retired == [["a"]]
    assert reports[-1] == {"ready": 2, "wanted": 2}
    keeper.on_order(order(1, 1, 1))
    await checked(keeper, 2)
    assert scheduler.retired == [["a"]]
    scheduler.may_retire.set()
    await checked(keeper, 3)
    assert scheduler.retired == [["a"], ["b"]]
    assert set(scheduler.workers) == {"c"}


async def test_a_worker_that_cannot_be_retired_is_left_alone_for_some_checks():
    scheduler = Scheduler("a")
    scheduler.stuck = {"a"}
    keeper = Keeper(scheduler, lambda report: None)
    keeper.on_order(order(0, 0, 0))
    await checked(keeper, 9)
    assert scheduler.retired == [["a"]]
    await checked(keeper, 9)
    assert scheduler.retired == [["a"], ["a"]]
    keeper.on_order(order(0, 0, 0))
    await checked(keeper, 2)
    assert len(scheduler.retired) == 3


def worker(*, group="", tasks=0, seconds=0.0, threads=2, nbytes=0):
    return SimpleNamespace(
        status=SimpleNamespace(name="running"),
        resources={group: 2.0} if group else {},
        processing=range(tasks),
        occupancy=seconds,
        nthreads=threads,
        nbytes=nbytes,
        memory_limit=100,
    )


def task(group="", seconds=-1.0):
    resources = {group: 1} if group else None
    return SimpleNamespace(resource_restrictions=resources, prefix=SimpleNamespace(duration_average=seconds))


class GroupScheduler(Scheduler):
    """Has workers of groups, and tasks that wait."""

    def __init__(self, **workers):
        super().__init__()
        self.workers = workers
        for name, each in workers.items():
            each.address = name
        self.queued, self.unrunnable, self.idle = [], {}, set()

    def workers_to_close(self, n=None):
        return [name for name in self.workers if name in self.idle] if n is None else list(self.workers)[:n]


@pytest.mark.parametrize(
    ("scheduler", "waiting", "targets"),
    [
        (GroupScheduler(), [], {"cpu": 0, "gpu": 0}),
        (GroupScheduler(), [task("gpu")], {"cpu": 0, "gpu": 1}),
        # Ten tasks of a minute each; how many threads a worker has is not known yet.
        (GroupScheduler(), [task("gpu", 60)] * 10, {"cpu": 0, "gpu": 10}),
        # A task that needs no group is one of the first group.
        (GroupScheduler(), [task(seconds=60)] * 3 + [task("other", 60)], {"cpu": 4, "gpu": 0}),
        # Two threads each.
        (GroupScheduler(a=worker(group="gpu", tasks=2, seconds=60)), [task("gpu", 60)] * 6, {"cpu": 0, "gpu": 4}),
        (GroupScheduler(a=worker(group="cpu", nbytes=70), b=worker(group="gpu")), [], {"cpu": 2, "gpu": 1}),
        # Workers of no group are counted nowhere.
        (GroupScheduler(a=worker(tasks=9, seconds=99)), [], {"cpu": 0, "gpu": 0}),
    ],
)
def test_each_group_wants_workers_for_its_own_tasks(scheduler, waiting, targets):
    scheduler.queued = waiting
    assert dask_keeper.group_targets(scheduler, ["cpu", "gpu"]) == targets


def test_an_idle_group_shrinks_alone():
    scheduler = GroupScheduler(a=worker(group="cpu", tasks=2, seconds=60), b=worker(group="gpu"), c=worker(group="gpu"))
    scheduler.idle = {"b", "c"}
    assert dask_keeper.group_targets(scheduler, ["cpu", "gpu"]) == {"cpu": 1, "gpu": 0}


async def test_groups_are_reported_and_retired_apart():
    reports = []
    workers = {name: worker(group=group) for name, group in [("a", "cpu"), ("b", "gpu"), ("c", "cpu"), ("d", "gpu")]}
    scheduler = GroupScheduler(**workers)
    scheduler.may_retire.clear()
    keeper = Keeper(scheduler, reports.append)
    keeper.on_order({"cpu": numbers(2, 2, 2), "gpu": numbers(0, 4, 1)})
    await checked(keeper)
    assert reports == [{"groups": [{"name": "cpu", "ready": 2, "wanted": 2}, {"name": "gpu", "ready": 2, "wanted": 2}]}]
    assert scheduler.retired == [["b"]]
    keeper.on_order({"cpu": numbers(1, 1, 1), "gpu": numbers(0, 4, 1)})
    await checked(keeper)
    assert scheduler.retired == [["b"], ["a"]], "a retirement of one group does not wait for that of another"
    scheduler.may_retire.set()
    await checked(keeper, 2)
    assert set(scheduler.workers) == {"c", "d"}


def test_an_order_for_groups_keeps_their_order():
    groups = [{"name": "gpu", **numbers(0, 4, 1)}, {"name": "cpu", **numbers(2, 2, 2)}]
    parsed = parse_order(json.dumps({**numbers(2, 6, 3), "groups": groups}))
    assert list(parsed.items()) == [("gpu", numbers(0, 4, 1)), ("cpu", numbers(2, 2, 2))]
    for wrong in ([1], [{"name": "a"}], 5, [{"name": "a", **numbers(3, 2, 1)}]):
        with pytest.raises(ValueError, match=r"."):
            parse_order(json.dumps({**numbers(2, 6, 3), "groups": wrong}))


async def test_errors_are_logged_and_the_next_check_follows(caplog):
    scheduler = Scheduler("a")
    reports = []
    keeper = Keeper(scheduler, reports.append)
    keeper.on_order(order(0, 4, 1))
    scheduler.target = None
    await checked(keeper)
    assert "could not be checked" in caplog.text
    scheduler.target = 1
    await checked(keeper)
    assert reports == [{"ready": 1, "wanted": 1}]


async def test_a_scheduler_that_closes_is_left_alone():
    scheduler = Scheduler("a")
    scheduler.status.name = "closing"
    keeper = Keeper(scheduler, pytest.fail)
    keeper.on_order(order(0, 0, 0))
    await checked(keeper)
    assert scheduler.retired == []


# The pod's main program

POOL = {"scheduler_port": 1, "dashboard_port": 2, "worker_port": 3, "nanny_port": 4}


def test_a_pool_without_limits_leaves_them_to_dask(tmp_path):
    arguments = dask_pod.scheduler_arguments(tmp_path, {**POOL, "idle_seconds": None}, "10.0.0.1")
    assert "--idle-timeout" not in arguments
    environ = {"WASMSPAWNER_DASK_SCHEDULER": "tls://10.0.0.1:1", "WASMSPAWNER_DASK_WORKER": "w"}
    arguments = dask_pod.worker_arguments(tmp_path, {**POOL, "threads": None, "memory_bytes": None}, "::1", environ)
    assert "--nthreads" not in arguments
    assert "--memory-limit" not in arguments
    assert "[::1]:0" in arguments


def test_a_worker_of_a_group_has_the_size_and_the_resource_of_its_group(tmp_path):
    environ = {"WASMSPAWNER_DASK_SCHEDULER": "tls://10.0.0.1:1", "WASMSPAWNER_DASK_WORKER": "w"}
    groups = [{"name": "cpu", "threads": 1, "memory_bytes": 5}, {"name": "gpu", "threads": 4, "memory_bytes": 7}]
    pool = {**POOL, "threads": None, "memory_bytes": None, "groups": groups}
    arguments = dask_pod.worker_arguments(tmp_path, pool, "::1", {**environ, "WASMSPAWNER_DASK_GROUP": "gpu"})
    assert arguments[-6:] == ["--nthreads", "4", "--memory-limit", "7", "--resources", "gpu=4"]


@pytest.mark.parametrize("role", ["scheduler", "worker"])
async def test_an_image_without_dask_is_named_with_the_remedy(tmp_path, role):
    (tmp_path / "pool.json").write_text(json.dumps(POOL))
    venv.create(tmp_path / "image", symlinks=True)
    shutil.copy(dask_pod.__file__, tmp_path)
    process = await asyncio.create_subprocess_exec(
        *(str(tmp_path / "image/bin/python"), "-I", str(tmp_path / "dask_pod.py"), role),
        env={},
        stderr=asyncio.subprocess.PIPE,
    )
    _, printed = await process.communicate()
    assert process.returncode == 1
    assert b"`pip install distributed`" in printed


def test_events_of_other_kinds_are_ignored():
    assert parse_order('{"minimum": 0, "maximum": 8, "target": 3, "later": 1}') == order(0, 8, 3)
    assert dask_keeper.INTERVAL_SECONDS == 1


@pytest.mark.parametrize(
    "data", ["[" * 60_000, '{"minimum": 1e999, "maximum": 1, "target": 1}', "9" * 5000, "null", ""]
)
def test_an_order_that_is_not_understood_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"."):
        parse_order(data)
