"""What a spawn and a stop cost JupyterHub: many users at once, pods that take a second.

    python tests/bench/hub_load.py [--users 100] [--rounds 3] [--progress] [--program FILE] [sleeper] [stub] [service]

`sleeper` is the reference: a spawner that only sleeps. `stub` is WasmSpawner with a fake service that only sleeps,
which measures the spawner's own cost. `service` is the real service with simulated pods, on the control plane of
TEST_KUBECONFIG if that is set (`make scale`), and otherwise on the one-machine cluster. Each has a Hub of its own with the
same proxy, and they take turns; ratios and differences are those to the first kind of the same round, medians of all rounds. The benchmark prints the wall time from the first request to the last ready lab and to the last
stopped lab, the Hub's CPU time per lab, its slowest answer to a small question during the starts, and the memory of the
service. CPU time is that of the Hub's process, so other work on the machine adds little to it, unlike to the wall time. It
needs the environment of `make test`.
"""

import argparse
import asyncio
import os
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import aiohttp
import psutil
from aiohttp import web

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy/local"))

import stack  # noqa: E402
import toolchain  # noqa: E402

TOKEN = "bench-token"
POD_SECONDS = 1.0


# Fake servers; started as `hub_load.py serve-stub PORT`.


async def a_lab(request):
    """Answers for all labs: JupyterHub asks each lab once whether it is ready."""
    return web.json_response({"version": "0"}, headers={"X-JupyterHub-Version": "6.1.1"})


async def an_event_stream(request):
    """The event stream of a spawn as the service writes it: a dozen events, those of half a second together."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    steps = ["Creating the namespace", "Creating objects", "Scheduled", "Pulling", "Pulled", "Started"]
    events = [
        f"id: j-{number}\nevent: progress\ndata: {10 + number * 15}\n\nid: j-{number}\nevent: info\ndata: {message}\n\n"
        for number, message in enumerate(steps)
    ]
    await response.write(f"retry: 1000\n\n{events[0]}".encode())
    await asyncio.sleep(POD_SECONDS / 2)
    await response.write("".join(events[1:4]).encode())
    await asyncio.sleep(POD_SECONDS / 2)
    end = f"id: j-99\nevent: complete\nurl: http://{request.host}/\ndata: Your lab is ready\n\n"
    await response.write(f"{events[4]}{events[5]}{end}".encode())
    return response


def serve_stub(port):
    """The fake service, which also answers for every lab."""

    async def state(request):
        return web.json_response({"status": "running", "url": f"http://127.0.0.1:{port}"})

    accepted = set()

    async def accept(request):
        await request.read()
        accepted.add(request.match_info["user"])
        return web.Response(status=303)

    async def all_states(request):
        labs = [{"username": user, "server": "", "status": "running"} for user in accepted]
        return web.json_response({"revision": "1", "complete": True, "labs": labs})

    app = web.Application()
    app.router.add_get("/spawner/v1/lab-status", all_states)
    app.router.add_post("/spawner/v1/labs/{user}/spawn", accept)
    app.router.add_get("/spawner/v1/labs/{user}/events", an_event_stream)
    app.router.add_get("/spawner/v1/labs/{user}", state)
    app.router.add_delete(
        "/spawner/v1/labs/{user}",
        lambda r: web.json_response({"detail": [{"msg": "none", "type": "unknown_lab"}]}, status=404),
    )
    app.router.add_get("/{tail:.*}", a_lab)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None, backlog=1024)


HUB_CONFIG = """
import asyncio, os, sys
from jupyterhub.spawner import Spawner
from wasmspawner import WasmSpawner
c = get_config()
load_subconfig(os.environ["BASE_CONFIG"])

LABS = "http://127.0.0.1:" + os.environ["BENCH_LABS_PORT"]

class Sleeper(Spawner):
    running = False
    async def start(self):
        self.running = True
        await asyncio.sleep({seconds})
        return LABS
    async def stop(self, now=False):
        self.running = False
    async def poll(self):
        return None if self.running else 0

class Measured(WasmSpawner):
    async def start(self):
        await super().start()
        return LABS  # simulated pods listen nowhere

c.JupyterHub.spawner_class = Sleeper if os.environ["BENCH"] == "sleeper" else Measured
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 60}}
c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.log_level = "WARN"
c.JupyterHub.services += [{{"name": "bench", "api_token": "{token}"}}]
c.JupyterHub.load_roles += [
    {{"name": "bench", "services": ["bench"], "scopes": ["admin:users", "admin:servers"]}},
    # With this the service asks two questions about each user: who has the token, and what the authenticator has stored.
    {{"name": "auth-state", "services": ["wasmspawner"], "scopes": ["admin:auth_state"]}},
]
"""


def adapt(config):
    """The section `hub` stays, because the service asks the Hub with it. Looking for forgotten labs is not measured."""
    config["hub"]["forgotten"] = {"check_every": "24h"}


class Node:
    """The node of the control plane in TEST_KUBECONFIG, and a namespace there for the service."""

    command = ("cargo", "bench", "--locked", "--quiet", "--workspace", "--bench", "scale", "--", "kubelet")

    def __init__(self, folder):
        self.log = folder / "kubelet.log"
        self.process = stack.Process("kubelet", self.log, self.command, ROOT, dict(os.environ))
        self.process.wait_until(lambda: self._last_line().startswith("scale-"), 60)
        self.namespace = self._last_line()

    def _last_line(self):
        return (self.log.read_text().splitlines() or [""])[-1]

    def stop(self):
        """End cargo and the program that it runs, which locks the cluster."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.child.pid, signal.SIGTERM)
        self.process.stop(5)

    def adapt(self, config):
        """Configure the service for that cluster, without its limit on requests, which is not measured."""
        adapt(config)
        del config["embedded"]
        config["kubernetes"] = {
            "kubeconfig": os.environ["TEST_KUBECONFIG"],
            "namespace": self.namespace,
            "instance": self.namespace,
            "requests_per_second": None,
        }
        config["names"] = {"namespace": self.namespace + "-{user_server}"}


@contextmanager
def running(kind, venv, folder, program):
    """A running Hub of that kind: its settings and process, and the process of the service."""
    port, hub_port = (stack.free_port() for _ in range(2))
    stub = stack.Process(
        "stub", folder / "stub.log", [sys.executable, __file__, "serve-stub", str(port)], folder, dict(os.environ)
    )
    config = folder / "config.py"
    config.write_text(HUB_CONFIG.format(seconds=POD_SECONDS, token=TOKEN))
    settings = stack.Settings(state=folder / "state", program=program, venv=venv, hub_port=hub_port)
    settings.state.mkdir(mode=0o700)
    settings.hub_config = config
    settings.runtime = "simulated"
    settings.adapt = adapt
    os.environ.update(BENCH=kind, BENCH_LABS_PORT=str(port), BASE_CONFIG=str(toolchain.LOCAL / "jupyterhub_config.py"))
    service = node = None
    try:
        stub.wait_until(lambda: stack.answers(f"http://127.0.0.1:{port}/"), 10)
        if kind == "service":
            settings.spawner_port = stack.free_port()
            if "TEST_KUBECONFIG" in os.environ:
                node = Node(folder)
                settings.adapt = node.adapt
            service = stack.start_service(settings)
        else:
            settings.spawner_port = port
        hub = stack.start_hub(settings, "" if service else "stub")
        try:
            yield settings, hub, service
        finally:
            hub.stop(20)
    finally:
        if service:
            service.stop(10)
        if node:
            node.stop()
        stub.stop(5)


async def measure(settings, hub, users, number, progress):
    """One round: (start seconds, stop seconds, Hub CPU milliseconds per lab to start, to stop, the Hub's slowest answer in
    seconds)."""
    # Call the Hub directly: the proxy is the same for all kinds and is not measured.
    api = f"http://127.0.0.1:{(settings.state / 'hub/internal.port').read_text()}/hub/api"
    process = psutil.Process(hub.child.pid)
    async with aiohttp.ClientSession(
        headers={"Authorization": f"token {TOKEN}"}, connector=aiohttp.TCPConnector(limit=0)
    ) as session:

        async def ask(method, path, **options):
            async with session.request(method, api + path, **options) as answer:
                body = await answer.text()
                if answer.status >= 400:
                    raise RuntimeError(f"{method} {path}: {answer.status} {body[:300]}")
                return answer.status

        async def watch(name):
            async with session.get(f"{api}/users/{name}/server/progress") as answer:
                await answer.read()

        async def slowest_answer():
            """The longest time that the Hub took for a small answer, until this is cancelled."""
            slowest = 0.0
            with suppress(asyncio.CancelledError):
                while True:
                    asked = time.perf_counter()
                    await ask("GET", "/")
                    slowest = max(slowest, time.perf_counter() - asked)
                    await asyncio.sleep(0.05)
            return slowest

        # Each round has other users: Kubernetes' namespace controller keeps a deleted namespace for five seconds, and a
        # spawn of the same user waits for that.
        names = [f"user{number}-{n:04}" for n in range(users)]
        await ask("POST", "/users", json={"usernames": names})
        before, begun = process.cpu_times(), time.perf_counter()
        asking = asyncio.create_task(slowest_answer())
        spawns = [asyncio.create_task(ask("POST", f"/users/{name}/server")) for name in names]
        watchers = []
        if progress:
            await asyncio.sleep(0.3)
            watchers = [asyncio.create_task(watch(name)) for name in names]
        codes = await asyncio.gather(*spawns)
        wall = time.perf_counter() - begun
        asking.cancel()
        slowest = await asking
        await asyncio.gather(*watchers, return_exceptions=True)
        after = process.cpu_times()
        assert set(codes) == {201}, f"not every lab was ready in time: {codes}"
        begun = time.perf_counter()
        await asyncio.gather(*(ask("DELETE", f"/users/{name}/server") for name in names))
        while await active(session, api):
            await asyncio.sleep(0.1)
        stop, end = time.perf_counter() - begun, process.cpu_times()
        return wall, stop, milliseconds(before, after) / users, milliseconds(after, end) / users, slowest


def milliseconds(before, after):
    return (after.user + after.system - before.user - before.system) * 1000


async def active(session, api):
    """Whether any server runs or is pending."""
    async with session.get(f"{api}/users?state=active&limit=1") as answer:
        return bool(await answer.json())


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("kinds", nargs="*", default=["sleeper", "stub", "service"])
    arguments.add_argument("--users", type=int, default=100)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--progress", action="store_true", help="every user watches the progress page")
    program = toolchain.target_dir() / "debug/wasmspawner"
    arguments.add_argument("--program", type=Path, default=program, help="the service (default: %(default)s)")
    wanted = arguments.parse_args()
    venv = Path(sys.executable).parent
    with ExitStack() as contexts:
        folder = contexts.enter_context(tempfile.TemporaryDirectory(prefix="hub-load-"))
        setups = {}
        for kind in wanted.kinds:
            (own := Path(folder, kind)).mkdir()
            setups[kind] = contexts.enter_context(running(kind, venv, own, wanted.program))
        results = {kind: [] for kind in setups}
        # The kinds take turns, so that other work on the machine is the same for all. The first round warms up.
        for number in range(wanted.rounds + 1):
            for kind, (settings, hub, _) in setups.items():
                try:
                    result = asyncio.run(measure(settings, hub, wanted.users, number, wanted.progress))
                except RuntimeError as error:
                    raise SystemExit(f"error: {error}\n{hub.tail()}") from None
                if number:
                    results[kind].append(result)
        memory = {
            kind: psutil.Process(service.child.pid).memory_info().rss
            for kind, (*_, service) in setups.items()
            if service
        }
    reference = results[wanted.kinds[0]]
    for kind, rounds in results.items():
        start, stop, start_cpu, stop_cpu, slowest = map(statistics.median, zip(*rounds, strict=True))
        ratio, cpu_ratio = (
            statistics.median(own[column] / other[column] for own, other in zip(rounds, reference, strict=True))
            for column in (0, 2)
        )
        more = statistics.median(own[2] - other[2] for own, other in zip(rounds, reference, strict=True))
        print(
            f"{kind:8} start {start:5.2f} s ({ratio:4.2f}x)   stop {stop:5.2f} s"
            f"   Hub CPU {start_cpu:5.1f} ms a start ({more:+5.1f} ms, {cpu_ratio:4.2f}x), {stop_cpu:5.1f} ms a stop"
            f"   slowest answer {slowest:4.2f} s"
            + (f"   service {memory[kind] / 2**20:.0f} MiB" if kind in memory else ""),
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve-stub"]:
        serve_stub(int(sys.argv[2]))
    else:
        main()
