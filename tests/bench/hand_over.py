"""What users notice when the service is replaced while their labs start: a rolling update of two processes, and of one.

    python tests/bench/hand_over.py [--users 200] [--program FILE] [undisturbed] [two] [one]

A JupyterHub starts labs for all users at once, on the control plane of TEST_KUBECONFIG with simulated pods (`make scale`).
`undisturbed` is the reference. With `two`, another process stands by and the one that leads is asked to end in the middle,
as an upgrade does. With `one`, there is no other: a new process starts after the old one has ended. A proxy stands for the
Service: it leads connections to the process that is ready. The benchmark fails if a user has no lab or the Hub logs an error;
it prints the time until the last lab, and how many spawns JupyterHub had to request once more.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import aiohttp
import hub_load

import stack
import toolchain

# The share of the spawns that have begun when the process that leads is asked to end.
SHARE = 0.3


AGAIN = "a spawn is requested once more"

HUB_CONFIG = f'''
from wasmspawner.progress import ProgressLog
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 300}}

go_on = ProgressLog.go_on

async def noted(self, message):
    print("{AGAIN}", flush=True)
    await go_on(self, message)

ProgressLog.go_on = noted
'''


class Front:
    """Stands for the Service: it leads each connection to the process that leads, and to that until another does."""

    def __init__(self, port, members):
        self.port = port
        self.members = members
        self.chosen = None

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.following = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_):
        self.following.cancel()
        self.server.close()

    async def _follow(self):
        async with aiohttp.ClientSession() as session:
            while True:
                self.chosen = await self._ready(session) or self.chosen
                await asyncio.sleep(0.05)

    async def _ready(self, session):
        for member in self.members:
            url = f"http://127.0.0.1:{member.health_port}/readyz"
            with suppress(aiohttp.ClientError, TimeoutError):
                async with session.get(url, timeout=aiohttp.ClientTimeout(total=1)) as answer:
                    if answer.status == 200:
                        return member
        return None

    async def _serve(self, reader, writer):
        with suppress(OSError):
            if self.chosen is not None:
                inner = await asyncio.open_connection("127.0.0.1", self.chosen.port)
                await asyncio.gather(_copy(reader, inner[1]), _copy(inner[0], writer))
        writer.close()


async def _copy(reader, writer):
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


class Member:
    """One process of the service, with a state folder of its own. The tokens are those of the first one."""

    def __init__(self, folder, name, first, node, program, venv):
        self.port = stack.free_port()
        self.settings = stack.Settings(state=folder / name, program=program, venv=venv)
        self.settings.runtime = "simulated"
        self.settings.spawner_port = self.port
        self.settings.state.mkdir(mode=0o700)
        self.settings.hub_internal_port = first.hub_internal_port

        def adapt(config):
            node.adapt(config)
            config["auth"]["static"]["tokens_file"] = str(first.state / "tokens.yaml")
            config["hub"]["token_file"] = str(first.service_token_file)

        self.settings.adapt = adapt
        self.process = None

    @property
    def health_port(self):
        file = self.settings.state / "health.port"
        return file.read_text() if file.exists() else 1

    def launch(self):
        """Start the process."""
        self.process = stack.launch_service(self.settings)

    def stop(self):
        """End the process."""
        if self.process is not None:
            self.process.stop(60)


async def until(condition, seconds):
    """Wait until the condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.05)


async def measure(kind, front, members, hub_api, users):
    """Seconds until the last lab is ready."""
    headers = {"Authorization": f"token {hub_load.TOKEN}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:

        async def ask(method, path, **options):
            async with session.request(method, hub_api + path, **options) as answer:
                if answer.status >= 400:
                    raise RuntimeError(f"{method} {path}: {answer.status} {(await answer.text())[:300]}")
                return answer.status

        names = [f"{kind}-{number:04}" for number in range(users)]
        await ask("POST", "/users", json={"usernames": names})
        begun = time.perf_counter()
        spawns = [asyncio.create_task(ask("POST", f"/users/{name}/server")) for name in names]
        if kind != "undisturbed":
            await until(lambda: sum(spawn.done() for spawn in spawns) >= SHARE * users, 300)
            old = front.chosen
            ended = asyncio.create_task(asyncio.to_thread(old.stop))
            if kind == "one":
                await ended
            new = members[-1]
            if new is old or new.process is not None:
                new = members[0]
            new.launch()
            await ended
        answers = await asyncio.gather(*spawns, return_exceptions=True)
        seconds = time.perf_counter() - begun
        wrong = [answer for answer in answers if answer != 201]
        if wrong:
            raise RuntimeError(f"{len(wrong)} of {users} users have no lab; the first answer: {wrong[0]}")
        await asyncio.gather(*(ask("DELETE", f"/users/{name}/server") for name in names))
        return seconds


async def run(kind, folder, program, users):
    """Run one kind with a Hub of its own, and print what it has shown."""
    venv = Path(sys.executable).parent
    with ExitStack() as cleanup:
        node = hub_load.Node(folder)
        cleanup.callback(node.stop)
        config = folder / "config.py"
        seconds = hub_load.POD_SECONDS
        config.write_text(hub_load.HUB_CONFIG.format(seconds=seconds, token=hub_load.TOKEN) + HUB_CONFIG)
        front_port, labs_port = stack.free_port(), stack.free_port()
        settings = stack.Settings(state=folder / "state", program=program, venv=venv, hub_port=stack.free_port())
        settings.state.mkdir(mode=0o700)
        settings.hub_config, settings.spawner_port = config, front_port
        os.environ.update(
            BENCH="service", BENCH_LABS_PORT=str(labs_port), BASE_CONFIG=str(toolchain.LOCAL / "jupyterhub_config.py")
        )
        labs = stack.Process(
            "labs",
            folder / "labs.log",
            [sys.executable, hub_load.__file__, "serve-stub", str(labs_port)],
            folder,
            dict(os.environ),
        )
        cleanup.callback(labs.stop, 5)
        stack.serve_command(settings)  # the folders, tokens and ports that the Hub and the processes share
        stack.token(settings, "--hub")
        members = [Member(folder, name, settings, node, program, venv) for name in ("first", "second")]
        for member in members:
            cleanup.callback(member.stop)
        async with Front(front_port, members) as front:
            members[0].launch()
            await until(lambda: front.chosen is not None, 120)
            if kind != "one":
                members[1].launch()
            hub = await asyncio.to_thread(stack.start_hub, settings)
            cleanup.callback(hub.stop, 20)
            hub_api = f"http://127.0.0.1:{(settings.state / 'hub/internal.port').read_text()}/hub/api"
            try:
                seconds = await measure(kind, front, members, hub_api, users)
            except (RuntimeError, TimeoutError) as error:
                raise SystemExit(f"error: {error!r}\n{hub.tail()}") from None
        log = hub.log.read_text()
        errors = [line for line in log.splitlines() if line.startswith("[E")]
        again = log.count(AGAIN)
        if errors:
            raise SystemExit("error: the Hub has logged errors:\n" + "\n".join(errors[:20]))
        return seconds, again


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("kinds", nargs="*", default=["undisturbed", "two", "one"])
    arguments.add_argument("--users", type=int, default=200)
    program = toolchain.target_dir() / "debug/wasmspawner"
    arguments.add_argument("--program", type=Path, default=program, help="the service (default: %(default)s)")
    wanted = arguments.parse_args()
    if "TEST_KUBECONFIG" not in os.environ:
        raise SystemExit("error: TEST_KUBECONFIG is not set; run this with `python tests/control-plane/run.py with`")
    reference = None
    for kind in wanted.kinds:
        with tempfile.TemporaryDirectory(prefix="hand-over-") as folder:
            seconds, again = asyncio.run(run(kind, Path(folder), wanted.program, wanted.users))
        reference = reference or seconds
        print(
            f"{kind:12} the last of {wanted.users} labs after {seconds:6.2f} s ({seconds / reference:4.2f}x);"
            f" {again} spawns were requested once more",
            flush=True,
        )


if __name__ == "__main__":
    main()
