"""Dask pools with the real `distributed`: what users do with a pool, and what happens to pools behind their backs."""

import os
import subprocess

import distributed
import numpy
import psutil
import pytest
from dask_site import MOST_WORKERS, DaskSite
from dask_tasks import BOUND, digest, random_bytes, wait_for
from distributed import Client
from kernel_site import USER
from world import eventually

import stack

GIGABYTE = 1 << 30


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The service and a lab. This process is in the lab."""
    with (
        DaskSite(tmp_path_factory.mktemp("dask")).running() as site,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in site.environment().items():
            patch.setenv(name, value)
        yield site


@pytest.fixture(scope="module")
def pool(site):
    """A pool for several tests, each of which scales it as it needs."""
    from wasmspawner.dask import WasmSpawnerCluster

    with WasmSpawnerCluster("big", n_workers=1) as pool:
        yield pool
    eventually(lambda: site.pool("big") is None, what="the pool is gone")


@pytest.fixture
def client(pool):
    with Client(pool, timeout=BOUND) as client:
        yield client


def scaled(site, client, pool, number):
    """Scale, and wait until exactly so many workers are connected and have pods. Returns their addresses."""
    pool.scale(number)

    def workers():
        found = client.scheduler_info(n_workers=-1)["workers"]
        state = site.pool(pool.name)["workers"]
        return list(found) if (len(found), state["ready"], state["pods"]) == (number,) * 3 else None

    return eventually(workers, BOUND, f"the pool has {number} workers") if number else []


def names_of_workers(client):
    return {worker["name"]: address for address, worker in client.scheduler_info(n_workers=-1)["workers"].items()}


def test_a_pool_grows_and_shrinks_without_losing_results(site, pool, client, capsys):
    assert client.submit(sum, [1, 2, 3]).result(BOUND) == 6
    results = client.map(random_bytes, range(4), pure=False)
    distributed.wait(results, BOUND)
    scaled(site, client, pool, MOST_WORKERS)
    for address in names_of_workers(client).values():
        results.append(client.submit(random_bytes, 0, workers=[address], pure=False))
    distributed.wait(results, BOUND)
    assert all(client.has_what().values()), "every worker has results"
    before = client.gather(client.map(digest, results))

    capsys.readouterr()
    pool.scale(MOST_WORKERS + 4)
    assert f"You may have {MOST_WORKERS} Dask workers at a time" in capsys.readouterr().out
    assert pool.pool.desired == MOST_WORKERS

    left = scaled(site, client, pool, 2)
    # They were random, so a result that was lost and computed again would be another one.
    assert client.gather(client.map(digest, results, pure=False)) == before
    assert set(client.has_what()) == set(left)


@pytest.mark.parametrize("what", ["worker", "container", "pod"])
def test_a_computation_survives_a_worker_that_is_killed(site, pool, client, what):
    scaled(site, client, pool, 2)
    event = distributed.Event(client=client)
    tasks = client.map(wait_for, [event.name] * 4, range(4), pure=False)
    eventually(lambda: all(len(busy) > 0 for busy in client.processing().values()), what="both workers are busy")
    name, address = min(names_of_workers(client).items())
    pid = client.run(os.getpid, workers=[address])[address]
    if what == "worker":
        psutil.Process(pid).kill()  # its nanny starts another one
    elif what == "container":
        psutil.Process(pid).parent().kill()
    else:
        site.delete_pod(name)
    eventually(lambda: not psutil.pid_exists(pid), what="the worker is gone")
    event.set()
    assert client.gather(tasks) == [0, 1, 2, 3]
    scaled(site, client, pool, 2)
    assert (name in names_of_workers(client)) == (what == "worker"), "a pod that is gone is replaced by another"


def test_a_computation_survives_the_death_of_the_service(site, pool, client):
    workers = scaled(site, client, pool, 2)
    event = distributed.Event(client=client)
    tasks = client.map(wait_for, [event.name] * 8, range(8), pure=False)
    eventually(lambda: all(len(busy) > 0 for busy in client.processing().values()), what="both workers are busy")
    site.kill_service()
    event.set()
    assert client.gather(tasks) == list(range(8))
    site.start_service()
    after = client.map(wait_for, [event.name] * 2, "ab", pure=False)
    eventually(lambda: site.pool("big")["workers"]["ready"] == 2, what="the scheduler has reported again")
    assert client.gather(after) == ["a", "b"]
    assert set(workers) == set(names_of_workers(client).values())
    assert set(workers) < set(scaled(site, client, pool, 3))


def test_a_gigabyte_is_summed_across_workers_through_tls(site, pool, client):
    workers = scaled(site, client, pool, 4)
    assert all(address.startswith("tls://") for address in [pool.scheduler_address, *workers])
    each = 32 << 20
    chunks, sums = [], []
    for number in range(GIGABYTE // each):
        made_by, summed_by = workers[number % 4], workers[(number + 1) % 4]
        chunk = client.submit(numpy.full, each // 8, number, dtype="f8", workers=[made_by], pure=False)
        chunks.append(chunk)
        sums.append(client.submit(numpy.sum, chunk, workers=[summed_by], pure=False))
    total = client.submit(lambda parts: sum(map(float, parts)), sums).result(BOUND)
    assert total == sum(number * (each // 8) for number in range(GIGABYTE // each))
    assert sum(client.nbytes(summary=False).values()) >= GIGABYTE
    with pytest.raises(OSError):
        Client(pool.scheduler_address, security=other_certificate(), timeout=3)


def other_certificate():
    """What somebody has who can reach the pool, and is not its user."""
    from wasmspawner.dask.certificate import Certificate
    from wasmspawner.dask.cluster import _security

    return _security(Certificate.new())


def test_an_adaptive_pool_follows_its_load(site, pool, client):
    pool.adapt(minimum=0, maximum=4)
    event = distributed.Event(client=client)
    tasks = client.map(wait_for, [event.name] * 100, range(100), pure=False)
    eventually(lambda: len(names_of_workers(client)) == 4, BOUND, "it has grown to its maximum")
    event.set()
    assert client.gather(tasks) == list(range(100))
    del tasks
    eventually(lambda: not site.workers(), BOUND, "it has shrunk to its minimum")
    assert client.submit(sum, [4, 5], pure=False).result(BOUND) == 9, "it grows again for a task"
    scaled(site, client, pool, 1)


def test_groups_of_workers_have_their_own_sizes_and_scale_apart(site, pool, client):
    from wasmspawner.dask import WasmSpawnerCluster, worker_group

    scaled(site, client, pool, 1)
    groups = {"small": worker_group(1), "wide": worker_group(minimum=0, maximum=2, options={"size": "medium"})}
    with (
        WasmSpawnerCluster("mixed", groups=groups, scheduler_options={"size": "medium"}) as mixed,
        Client(mixed) as user,
    ):

        def sizes():
            workers = user.scheduler_info(n_workers=-1)["workers"].values()
            return sorted(worker["memory_limit"] // GIGABYTE for worker in workers)

        eventually(lambda: sizes() == [1], BOUND, "the group of one worker is there")
        event = distributed.Event("wide", client=user)
        tasks = user.map(wait_for, [event.name] * 20, range(20), pure=False, resources={"wide": 1})
        eventually(lambda: sizes()[:2] == [1, 2], BOUND, "the other group has grown for its tasks")
        # Dask learns while they run that they take long.
        eventually(lambda: sizes() == [1, 2, 2], BOUND, "the other group has grown to its maximum")
        assert user.submit(sum, [1, 2], resources={"small": 1}).result(BOUND) == 3
        mixed.scale(2, group="small")
        eventually(lambda: sizes() == [1, 1, 2, 2], BOUND, "one group is scaled alone")
        event.set()
        assert user.gather(tasks) == list(range(20))
        del tasks
        eventually(lambda: sizes() == [1, 1], BOUND, "the idle group is gone, and the other one is not")
        state = site.pool("mixed")
        assert [
            (group["name"], group["maximum"], group["limits"]["memory"] // GIGABYTE) for group in state["groups"]
        ] == [
            ("small", 2, 1),
            ("wide", 2, 2),
        ]
    eventually(lambda: site.pool("mixed") is None, what="the pool is gone")


def test_a_name_is_used_once_and_leads_other_processes_to_the_pool(site, pool, client):
    from wasmspawner.dask import PoolExists, PoolUnknown, WasmSpawnerCluster

    scaled(site, client, pool, 1)
    with pytest.raises(PoolExists, match="from_name"):
        WasmSpawnerCluster("big")
    with pytest.raises(PoolUnknown, match="This lab has the pools big"):
        WasmSpawnerCluster.from_name("small")
    client.submit(sum, [20, 22], pure=False).result(BOUND)
    script = (
        "from wasmspawner.dask import WasmSpawnerCluster\n"
        "with WasmSpawnerCluster.from_name('big') as pool, pool.get_client() as client:\n"
        "    print(client.submit(sum, [20, 22]).result())\n"
    )
    assert in_another_process("python", "-c", script) == "42\n"
    assert site.pool("big")["status"] == "running", "it is not stopped by somebody who only visited it"


def test_pools_are_listed_scaled_and_stopped_in_a_terminal(site, pool, client):
    from wasmspawner.dask import WasmSpawnerCluster

    pool.scale(1)
    other = WasmSpawnerCluster("other", shutdown_on_close=False)
    listed = in_another_process("wasmspawner", "dask", "list")
    assert [line.split()[:2] for line in listed.splitlines()[1:]] == [["big", "running"], ["other", "running"]]
    scaling = in_another_process("wasmspawner", "dask", "scale", "other", "0-3")
    assert scaling.startswith("The pool other is to have 0-3 workers")
    assert site.pool("other")["workers"]["maximum"] == 3
    in_another_process("wasmspawner", "dask", "stop", "other")
    eventually(lambda: site.pool("other") is None, what="the pool is gone")
    other.close()


def in_another_process(*command):
    """Run a command in a terminal of the lab. Returns what it prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=BOUND).stdout


def test_a_pool_without_work_ends_by_itself(site):
    from wasmspawner.dask import WasmSpawnerCluster

    # Its time begins before its client is connected.
    pool = WasmSpawnerCluster("brief", idle_timeout=15)
    address = pool.scheduler_address
    eventually(lambda: site.pool("brief") is None, BOUND, "the pool is gone")
    eventually(lambda: pool.status.name == "failed", what="its client knows")
    pool.close()
    with pytest.raises(OSError):
        Client(address, security=pool.security, timeout=1)


def test_what_is_not_allowed_is_said_before_anything_is_made(site, monkeypatch):
    from wasmspawner.dask import WasmSpawnerCluster

    with pytest.raises(PermissionError, match=f"You may have {MOST_WORKERS} Dask workers"):
        WasmSpawnerCluster("huge", n_workers=MOST_WORKERS + 1)
    assert site.pool("huge") is None
    site.add_guest("eve")
    site.lone.start_lab("eve", image="minimal")
    for name, value in site.environment("eve").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PermissionError, match=r"^Guests have no pools\.$"):
        WasmSpawnerCluster("hers", n_workers=1)
    assert site.pool("hers", "eve") is None


def test_nothing_is_left_of_the_pools_of_a_lab_that_is_deleted(site, monkeypatch):
    from wasmspawner.dask import WasmSpawnerCluster

    site.lone.start_lab("bea", image="minimal")
    for name, value in site.environment("bea").items():
        monkeypatch.setenv(name, value)
    pools = [WasmSpawnerCluster(name, n_workers=1) for name in ("one", "two")]
    for pool in pools:
        pool.wait_for_workers(1, timeout=BOUND)
    assert len(site.processes("bea")) >= 4
    assert len(site.objects("bea")) > 5
    assert site.lone.ask("DELETE", "/labs/bea").status_code == 202
    eventually(lambda: site.lone.ask("GET", "/labs/bea").status_code == 404, what="the lab is gone")
    assert site.lone.ask("GET", "/labs/bea/dask-pools").json() in ([], None)
    eventually(lambda: not site.objects("bea"), what="its objects are gone")
    eventually(lambda: not site.processes("bea"), what="its processes are gone")
    for pool in pools:
        pool.close()
    assert site.lone.get(f"/labs/{USER}")["status"] == "running"
    assert stack.is_free(8787)
