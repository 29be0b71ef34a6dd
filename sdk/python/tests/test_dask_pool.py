"""Pools with real schedulers, workers and clients of Dask, whose pods are processes on loopback addresses."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import dask.config
import psutil
import pytest
from distributed import Client, Event, wait
from distributed.security import Security
from fake_pools import BOUND, until

from wasmspawner.dask import PoolError, WasmSpawnerCluster, worker_group
from wasmspawner.dask.certificate import Certificate, certificate_file
from wasmspawner.lab import Lab

# Dask's own settings, with which a pool grows and shrinks in a tenth of the time. The keeper's tests are about its defaults.
QUICK = {"DASK_DISTRIBUTED__ADAPTIVE__INTERVAL": "100ms", "DASK_DISTRIBUTED__ADAPTIVE__TARGET_DURATION": "500ms"}


def start(**arguments):
    return WasmSpawnerCluster(**{"asynchronous": True, "quiet": True, "timeout": BOUND, "env": QUICK, **arguments})


def connect(cluster):
    return Client(cluster, asynchronous=True)


async def workers_are(cluster, number):
    """Wait until so many workers are connected, and none besides."""
    await until(lambda: len(cluster.scheduler_info["workers"]) == number)


async def test_a_pool_computes_over_tls_keeps_its_data_when_it_shrinks_and_stops(pools):
    file = certificate_file(Lab("ada"), "big")
    async with start(name="big", n_workers=1) as cluster, connect(cluster) as client:
        assert cluster.scheduler_address.startswith("tls://127.")
        assert file.stat().st_mode & 0o777 == 0o600
        assert await client.submit(sum, [1, 2, 3]) == 6

        await cluster.scale(4)
        await cluster._wait_for_workers(4, timeout=BOUND)
        data = await client.scatter(list(range(100)))
        persisted = client.map(lambda x: x * 2, range(40))
        await wait(persisted)

        pool = pools.only()
        listening = {
            (c.laddr.ip, pid)
            for process in (pool.scheduler, *pool.workers.values())
            for pid in [process.pid]
            for p in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
            for c in p.net_connections("inet")
            if c.status == psutil.CONN_LISTEN
        }
        assert len({pid for _, pid in listening}) == 5
        assert all(ip.startswith(f"{pool.network}.") for ip, _ in listening), listening

        await cluster.scale(2)
        await workers_are(cluster, 2)
        assert await client.gather(data) == list(range(100))
        assert await client.gather(persisted) == [x * 2 for x in range(40)]
        await until(lambda: len(pool.exit_codes) == 2 and pool.ready == 2)
        assert set(pool.exit_codes.values()) == {0}  # retired workers
        assert "workers=2" in repr(cluster)
        assert "Workers: 2" in cluster._repr_html_()
    await until(lambda: not pools.pools)
    await until(lambda: "scheduler" in pool.exit_codes)
    assert pool.exit_codes["scheduler"] == 0
    assert not file.exists()


async def test_an_adaptive_pool_grows_under_load_and_shrinks_when_it_is_idle(pools):
    def pass_gate(number):  # sent by value, because workers cannot import this file
        Event("gate").wait()
        return number

    async with start(minimum=0, maximum=2) as cluster, connect(cluster) as client:
        gate = await Event("gate", client=client)
        tasks = client.map(pass_gate, range(8))
        await workers_are(cluster, 2)
        await gate.set()
        assert await client.gather(tasks) == list(range(8))
        del tasks
        pool = pools.only()
        await until(lambda: pool.reports[-1] == {"ready": 0, "wanted": 0} and not pool.workers)
        assert {pool.exit_codes[name] for name in pool.exit_codes} == {0}


async def test_groups_of_workers_compute_their_own_tasks_and_scale_apart(pools):
    def pass_gate(number):
        Event("gpu-gate").wait()
        return number

    groups = {"cpu": worker_group(1), "gpu": worker_group(minimum=0, maximum=2, options={"size": "gpu"})}
    async with start(groups=groups, scheduler_options={"size": "small"}) as cluster, connect(cluster) as client:
        pool = pools.only()
        assert pool.body["scheduler"] == {"options": {"size": "small"}}
        assert [group["options"] for group in pool.body["groups"]] == [{}, {"size": "gpu"}]
        await workers_are(cluster, 1)
        gate = await Event("gpu-gate", client=client)
        # These need the group that has no workers yet; the scheduler asks for two.
        tasks = client.map(pass_gate, range(4), resources={"gpu": 1})
        await workers_are(cluster, 3)
        assert await client.submit(lambda: 1, resources={"cpu": 1}) == 1, "its worker is free"
        await cluster.scale(2, group="cpu")
        await workers_are(cluster, 4)
        await gate.set()
        assert await client.gather(tasks) == list(range(4))
        await client.cancel(tasks)
        del tasks
        # The idle group shrinks to nothing, and the other one stays.
        await until(lambda: sorted(pool.group_of[name] for name in pool.workers) == ["cpu", "cpu"])
        await cluster._refresh()
        assert [(group.name, group.ready, group.scaling) for group in cluster.pool.groups] == [
            ("cpu", 2, "2"),
            ("gpu", 0, "0-2"),
        ]
        assert "Group gpu: 0 of 0-2 workers" in cluster._repr_html_()
        with pytest.raises(PoolError, match="no such group"):
            await cluster.scale(1, group="tpu")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": {}}, "groups is empty"),
        ({"groups": {"a": worker_group(1)}, "n_workers": 1}, "cannot be combined"),
        ({"groups": {"a": worker_group(1)}, "maximum": 1}, "cannot be combined"),
    ],
)
def test_groups_have_their_own_numbers(pools, arguments, message):
    with pytest.raises(ValueError, match=message):
        start(**arguments)


async def test_a_killed_worker_process_is_survived(pools):
    async with start(n_workers=1) as cluster, connect(cluster) as client:
        await cluster._wait_for_workers(1, timeout=BOUND)
        pid = await client.submit(os.getpid, pure=False)
        result = client.submit(lambda: 7)
        assert await result == 7
        os.kill(pid, signal.SIGKILL)
        # Its pod lives on with another process, and the lost result is computed anew.
        assert await asyncio.wait_for(client.submit(lambda x: x + 1, result), BOUND) == 8
        assert await client.submit(os.getpid, pure=False) != pid
        assert pools.only().exit_codes == {}


async def test_who_has_no_certificate_is_refused(pools):
    async with start() as cluster:
        address = cluster.scheduler_address
        for security in (Security.temporary(), None):
            where = address if security else address.replace("tls://", "tcp://")
            with pytest.raises(OSError):
                async with Client(where, security=security, timeout=2, asynchronous=True):
                    pass
        Certificate.new().save(Lab("ada"), cluster.name)
        with (
            dask.config.set({"distributed.comm.timeouts.connect": 1}),
            pytest.raises(PoolError, match="certificate here may be that of a former pool"),
        ):
            await WasmSpawnerCluster.from_name(cluster.name, asynchronous=True)
        assert pools.only().status == "running"


REATTACH = """
from wasmspawner.dask import WasmSpawnerCluster
with WasmSpawnerCluster.from_name("shared") as cluster, cluster.get_client() as client:
    print(client.submit(sum, [4, 5]).result(), client.get_dataset("kept"))
"""
ABANDON = """
from wasmspawner.dask import WasmSpawnerCluster
cluster = WasmSpawnerCluster("abandoned", quiet=True)
print(cluster.scheduler_address, flush=True)
import os, sys
if os.fork() == 0:
    sys.exit(0)
print(os.wait()[1], flush=True)
"""


async def run(code):
    path = str(Path(__file__).parents[1] / "src")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    )
    output, _ = await asyncio.wait_for(process.communicate(), BOUND)
    return process.returncode, output.decode().split()


async def test_a_wait_for_workers_that_do_not_come_says_why(pools):
    async with start() as cluster:
        pools.only().fields = {"workers": {"message": "no node has room"}}
        with pytest.raises(TimeoutError) as error:
            await cluster._wait_for_workers(1, timeout=0.1)
        assert error.value.__notes__ == ["no node has room"]


async def test_another_process_connects_by_name_and_leaves_the_pool(pools):
    async with start(name="shared", n_workers=1) as cluster, connect(cluster) as client:
        await client.publish_dataset(11, name="kept")
        assert await run(REATTACH) == (0, ["9", "11"])
        assert pools.only().status == "running"
        assert await client.submit(sum, [1]) == 1


async def test_a_process_that_exits_stops_its_pool_and_its_fork_does_not(pools):
    code, (address, fork) = await run(ABANDON)
    assert (code, fork) == (0, "0")
    assert address.startswith("tls://")
    assert [r.path for r in pools.requests if r.method == "DELETE"] == ["/labs/ada/dask-pools/abandoned"]
    assert not certificate_file(Lab("ada"), "abandoned").exists()


async def test_an_idle_pool_ends_with_exit_code_0_and_its_cluster_says_so(pools, monkeypatch):
    monkeypatch.setattr("wasmspawner.dask.cluster._REFRESH_MILLISECONDS", 100)

    def shorten(dask_scheduler):  # sent by value, because the scheduler cannot import this file
        asked_for, dask_scheduler.idle_timeout = dask_scheduler.idle_timeout, 1
        return asked_for

    # Its time begins before there is a worker, which takes a while to start on a busy machine. So it is long until then.
    async with start(name="idle", idle_timeout=600, n_workers=1) as cluster:
        pool = pools.only()
        await workers_are(cluster, 1)
        async with connect(cluster) as client:
            assert await client.submit(sum, [1, 2]) == 3
            assert await client.run_on_scheduler(shorten) == 600
        await until(lambda: len(pool.exit_codes) == 2)
        assert pool.exit_codes == {"scheduler": 0, "w10": 0}
        await until(lambda: cluster.status.name == "failed")
        assert "There is no Dask pool 'idle'" in (await cluster._get_logs(scheduler=False, workers=False))["Cluster"]
        assert not certificate_file(Lab("ada"), "idle").exists()


async def test_the_scheduler_goes_on_without_the_service_and_reports_anew(pools):
    async with start(n_workers=1) as cluster, connect(cluster) as client:
        await workers_are(cluster, 1)
        pool = pools.only()
        await until(lambda: pool.reports and pool.reports[-1] == {"ready": 1, "wanted": 1})
        await pools.go_away()
        assert await client.submit(sum, [1, 2]) == 3
        pool.reports.clear()
        pool.resize(2)
        pools.come_back()
        await until(lambda: pool.reports)
        # Only the newest state is sent, and it may know already what is wanted now.
        assert pool.reports[0] in ({"ready": 1, "wanted": 1}, {"ready": 1, "wanted": 2})
        await workers_are(cluster, 2)
        await until(lambda: pool.reports[-1] == {"ready": 2, "wanted": 2})
        assert json.loads((pool.folder / "pool.json").read_text())["url"].endswith(f"/dask-pools/{cluster.name}")
