"""A fake of the service's routes for Dask pools, which runs the real programs of the pods on loopback addresses.

It starts and forgets processes as the service does pods: it adds workers up to the keeper's target, and never ends one
that is too many.
"""

import asyncio
import contextlib
import errno
import hashlib
import itertools
import json
import os
import shutil
import socket
import sys
from types import SimpleNamespace

from aiohttp import web
from aiohttp.test_utils import TestServer
from fake_kernels import problem

from wasmspawner import dask_keeper, dask_pod, dask_tls, service_link

BOUND = 30
TOKEN, KEEPER_TOKEN = "t0", "keeper-token"
MOUNTED = (dask_pod.__file__, dask_keeper.__file__, dask_tls.__file__, service_link.__file__)
_networks = itertools.count()


def take_network():
    """A network of loopback addresses for one pool, and the socket that keeps it from the pools of other processes."""
    while True:
        network = f"127.{20 + os.getpid() % 200}.{next(_networks) % 250}"
        try:
            return network, socket.create_server((f"{network}.2", 8786))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


async def until(condition, bound=BOUND):
    """Wait until a condition holds, and return its value."""
    async with asyncio.timeout(bound):
        while not (value := condition()):  # noqa: ASYNC110 - processes tell nobody
            await asyncio.sleep(0.02)
        return value


def kill(process):
    """Kill a pod's process. That of a worker takes its child along, which ends when its parent is gone."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()


class Group:
    """The workers of one group: their bounds, and what the keeper has reported."""

    def __init__(self):
        self.minimum, self.maximum, self.ready, self.wanted = 0, 0, 0, None

    @property
    def target(self):
        return min(max(self.wanted or 0, self.minimum), self.maximum)


class Pool:
    """One pool: its scheduler and workers are processes, its `changed` wakes the keeper's stream."""

    def __init__(self, fake, name, body):
        self.fake, self.name, self.body = fake, name, body
        self.network, self.network_lock, self.folder = "", None, None
        self.hosts = itertools.count(10)
        self.status, self.fields = "starting", {}
        self.reports = []
        self.changed = asyncio.Condition()
        self.workers, self.exit_codes, self.tasks = {}, {}, []
        self.group_of = {}
        self.started = asyncio.Event()
        self.scheduler, self.killed = None, False
        groups = body.get("groups") or [{"name": "", "workers": body["workers"]}]
        self.groups = {group["name"]: Group() for group in groups}
        for group in groups:
            self.resize(group["workers"], group["name"])

    def resize(self, workers, group=""):
        bounds = workers if isinstance(workers, dict) else {"minimum": workers, "maximum": workers}
        self.groups[group].minimum, self.groups[group].maximum = bounds["minimum"], bounds["maximum"]

    def report(self, report):
        self.reports.append(report)
        for group in report.get("groups") or [{"name": "", **report}]:
            self.groups[group["name"]].ready, self.groups[group["name"]].wanted = group["ready"], group["wanted"]

    def order(self):
        numbers = [
            {"name": name, "minimum": group.minimum, "maximum": group.maximum, "target": group.target}
            for name, group in self.groups.items()
        ]
        keys = ("minimum", "maximum", "target")
        total = {key: sum(group[key] for group in numbers) for key in keys}
        return total if "" in self.groups else {**total, "groups": numbers}

    @property
    def ready(self):
        return sum(group.ready for group in self.groups.values())

    @property
    def digest(self):
        certificate = self.body.get("tls", {}).get("certificate", "")
        return "sha256:" + hashlib.sha256(certificate.encode()).hexdigest()

    @property
    def target(self):
        return sum(group.target for group in self.groups.values())

    @property
    def has_scheduler(self):
        return self.scheduler is not None and self.scheduler.returncode is None and not self.killed

    @property
    def address(self):
        return f"{self.network}.1"

    def write_files(self):
        self.folder.mkdir()
        for source in MOUNTED:
            shutil.copy(source, self.folder)
        # An image without bokeh, which takes a second of CPU time to load; its plots belong to the end-to-end tests.
        (self.folder / "image").mkdir()
        (self.folder / "image" / "bokeh.py").write_text("raise ImportError('this image has no bokeh')\n")
        (self.folder / "tls.crt").write_text(self.body["tls"]["certificate"])
        (self.folder / "tls.key").write_text(self.body["tls"]["key"])
        (self.folder / "token").write_text(KEEPER_TOKEN)
        ports = {"scheduler_port": 8786, "dashboard_port": 8787, "worker_port": 8788, "nanny_port": 8789}
        pool = {"url": f"{self.fake.url}/labs/ada/dask-pools/{self.name}", **ports}
        pool.update(threads=1, memory_bytes=400_000_000, idle_seconds=self.body["idle_timeout"])
        pool["groups"] = [{"name": name, "threads": 1, "memory_bytes": 400_000_000} for name in self.groups if name]
        (self.folder / "pool.json").write_text(json.dumps(pool))

    async def start(self):
        self.network, self.network_lock = take_network()
        self.folder = self.fake.folder / f"{self.name}-{self.network}"
        self.write_files()
        self.scheduler = await self.run("scheduler", self.address)
        self.tasks.append(asyncio.create_task(self.end_with_scheduler()))

    async def run(self, role, address, **variables):
        # Nobody else needs the many threads that numerical libraries would start. Dask's scratch space is in the pool's
        # folder, which pytest removes.
        env = {**os.environ, **self.body["env"], "POD_IP": address, "OMP_NUM_THREADS": "1", **variables}
        env.update(TMPDIR=str(self.folder), PYTHONPATH=str(self.folder / "image"))
        name = variables.get("WASMSPAWNER_DASK_WORKER", role)
        command = (sys.executable, "-I", str(self.folder / "dask_pod.py"), role)
        with open(self.folder / f"{name}.log", "wb") as log:  # noqa: ASYNC230 - a local file
            process = await asyncio.create_subprocess_exec(*command, env=env, stdout=log, stderr=log)
        if self.killed:  # while it was being started
            kill(process)
        return process

    async def end_with_scheduler(self):
        self.exit_codes["scheduler"] = await self.scheduler.wait()
        if self.fake.pools.get(self.name) is self and self.exit_codes["scheduler"] == 0:
            del self.fake.pools[self.name]
        await self.end()

    async def add_workers(self):
        while self.has_scheduler and (group := self.short_group()) is not None:
            name = f"w{next(self.hosts)}"
            self.workers[name], self.group_of[name] = None, group
            address = f"{self.network}.{name[1:]}"
            scheduler = f"tls://{self.address}:8786"
            process = await self.run(
                "worker",
                address,
                WASMSPAWNER_DASK_SCHEDULER=scheduler,
                WASMSPAWNER_DASK_WORKER=name,
                WASMSPAWNER_DASK_GROUP=group,
            )
            self.workers[name] = process
            self.tasks.append(asyncio.create_task(self.forget(name, process)))

    def short_group(self):
        """A group that has too few workers; None if each has enough."""
        present = [self.group_of[name] for name in self.workers]
        return next((name for name, group in self.groups.items() if present.count(name) < group.target), None)

    async def forget(self, name, process):
        self.exit_codes[name] = await process.wait()
        self.workers.pop(name)
        await self.add_workers()

    def kill(self):
        """Kill what is left, without the time that processes take to end."""
        self.killed = True
        for process in (self.scheduler, *self.workers.values()):
            if process is not None:
                kill(process)

    async def change(self):
        await self.add_workers()
        async with self.changed:
            self.changed.notify_all()

    async def end(self):
        """End the scheduler, which ends its workers. A worker that has not connected yet gets a signal of its own."""
        self.status = "terminating"
        if self.scheduler is not None:
            with contextlib.suppress(ProcessLookupError):
                self.scheduler.terminate()
            await self.scheduler.wait()
        processes = [p for p in self.workers.values() if p is not None]
        try:
            async with asyncio.timeout(5):
                await asyncio.gather(*(p.wait() for p in processes))
        except TimeoutError:
            for process in processes:
                kill(process)
        if self.fake.pools.get(self.name) is self:
            del self.fake.pools[self.name]

    def document(self):
        listens = self.started.is_set()
        workers = {"desired": self.target, "ready": self.ready, "pods": len(self.workers)}
        order = self.order()
        workers.update(minimum=order["minimum"], maximum=order["maximum"], message=None)
        document = {"name": self.name, "status": self.status, "stage": "", "reason": None, "message": None}
        document.update(workers=workers, idle_timeout=self.body["idle_timeout"], outlives_lab=False)
        document["certificate_digest"] = self.digest
        document["groups"] = [
            {**numbers, "desired": numbers["target"], "ready": self.groups[numbers["name"]].ready}
            for numbers in order.get("groups", ())
        ]
        document["scheduler_address"] = f"tls://{self.address}:8786" if listens else None
        document["dashboard_url"] = f"http://{self.address}:8787" if listens else None
        return {**document, **self.fields}


class FakePools:
    """`answers` are coroutine functions that answer first, by `METHOD verb` (the last segment of the path). `held` are fields of new
    pools, whose processes are then not started. While it is `away`, it answers nobody."""

    def __init__(self, folder):
        self.folder, self.url = folder, ""
        self.pools, self.requests, self.answers = {}, [], {}
        self.started = []
        self.held, self.note, self.events = None, None, []
        self.away = False
        self.streams = set()
        self.server = None

    def only(self):
        (pool,) = self.pools.values()
        return pool

    async def handle(self, request):
        path = request.raw_path.removeprefix("/spawner/v1")
        body = await request.json() if request.can_read_body else None
        below = path.removeprefix("/labs/ada/dask-pools").strip("/")
        verb = "pool" if request.method == "POST" and "/" not in below else path.rpartition("/")[2]
        self.requests.append(SimpleNamespace(method=request.method, path=path, body=body))
        if self.away:
            return web.Response(status=503)
        if answers := self.answers.get(f"{request.method} {verb}"):
            return await answers.pop(0)(request)
        assert path.startswith("/labs/ada/dask-pools"), path
        name, _, verb = path.removeprefix("/labs/ada/dask-pools").strip("/").partition("/")
        token = KEEPER_TOKEN if verb == "scheduler" else TOKEN
        assert request.headers["Authorization"] == f"Bearer {token}"
        if not name:
            return web.json_response(sorted(self.pools))
        pool = self.pools.get(name)
        if request.method == "POST" and not verb:
            return await self.spawn(name, pool, body)
        if pool is None:
            return problem(404, f"there is no pool {name}", "unknown_pool")
        return await getattr(self, f"{request.method.lower()}_{verb}")(request, pool, body)

    async def spawn(self, name, pool, body):
        if pool is not None:
            return problem(409, f"there is a pool {name} already", "pool_exists")
        pool = self.pools[name] = Pool(self, name, body)
        if self.held is None:
            self.started.append(pool)
            await pool.start()
        else:
            pool.fields = self.held
        location = {"Location": f"/spawner/v1/labs/ada/dask-pools/{name}"}
        return web.json_response(pool.document(), status=201, headers=location)

    async def get_(self, _request, pool, _body):
        return web.json_response(pool.document())

    async def delete_(self, request, pool, _body):
        if (meant := request.headers.get("If-Match")) and meant.strip('"') != pool.digest:
            return problem(412, f"the pool {pool.name} is another one", "another_pool")
        pool.status = "terminating"
        if pool.scheduler is None:
            del self.pools[pool.name]
        else:
            pool.tasks.append(asyncio.create_task(pool.end()))
        return web.Response(status=202)

    async def post_scale(self, _request, pool, body):
        if body.get("group", "") not in pool.groups:
            return problem(422, "there is no such group; the groups are cpu, gpu", "invalid_pool")
        pool.resize(body["workers"], body.get("group", ""))
        await pool.change()
        return web.json_response({**pool.document(), "note": self.note}, status=202)

    async def put_scheduler(self, _request, pool, body):
        pool.report(body)
        await pool.change()
        return web.Response(status=204)

    async def get_scheduler(self, request, pool, _body):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self.streams.add(asyncio.current_task())
        pool.status = "running"
        pool.started.set()
        await pool.add_workers()
        sent = None
        try:
            while True:
                order = pool.order()
                if order != sent:
                    sent = order
                    await response.write(f"event: workers\ndata: {json.dumps(order)}\n\n".encode())
                async with pool.changed:
                    if order == pool.order():
                        await pool.changed.wait()
        finally:
            self.streams.discard(asyncio.current_task())

    async def get_events(self, request, pool, _body):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number, (name, data) in enumerate(self.events, 1):
            if number > int(request.headers.get("Last-Event-ID", 0)):
                await response.write(f"id: {number}\nevent: {name}\ndata: {data}\n\n".encode())
        return response

    async def go_away(self):
        """Break all streams and answer 503 until `come_back`."""
        self.away = True
        for stream in list(self.streams):
            stream.cancel()

    def come_back(self):
        self.away = False

    async def serve(self):
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self.handle)
        self.server = TestServer(app)
        await self.server.start_server(shutdown_timeout=0.1)
        self.url = str(self.server.make_url("/spawner/v1"))

    async def close(self):
        # A worker of Dask takes two seconds to end. Those whose end a test is about have ended by now.
        for pool in self.started:
            pool.kill()
        await asyncio.gather(*(pool.end() for pool in self.started))
        async with asyncio.timeout(BOUND):
            for pool in self.started:
                while pool.tasks:
                    await pool.tasks.pop()
                pool.network_lock.close()
        for stream in list(self.streams):
            stream.cancel()
        await self.server.close()
