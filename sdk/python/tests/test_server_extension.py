"""The extension, as jupyter-server-proxy asks it, and in a real Jupyter server."""

import asyncio
import os
import shutil
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fake_kernels import own_address
from jupyter_server_proxy.config import ServerProxy
from traitlets.config import Config

from wasmspawner import server_extension
from wasmspawner.server_extension import Dashboards, with_dashboards

SDK = Path(__file__).parents[1]
DASHBOARD = ("10.2.3.4", 8787)


def request(port):
    return SimpleNamespace(path_args=["10.2.3.4", port, "/status"])


@pytest.mark.parametrize(
    ("configured", "host", "port", "allowed"),
    [
        (["localhost"], "localhost", "1", True),
        (["localhost"], "10.2.3.4", "8787", True),
        (["localhost"], "10.2.3.4", "8786", False),
        (["localhost"], "10.2.3.4", "²", False),
        (["localhost"], "10.2.3.5", "8787", False),
        (lambda handler, host: host == "own", "own", "1", True),
        (lambda handler, host: host == "own", "10.2.3.4", "8787", True),
        (lambda handler, host: host == "own", "localhost", "8787", False),
    ],
)
def test_dashboards_are_allowed_besides_what_is_configured(configured, host, port, allowed):
    assert with_dashboards(configured, {DASHBOARD})(request(port), host) is allowed


@pytest.mark.parametrize(
    ("configure", "allowed"),
    [
        (lambda proxy: None, {"localhost", "127.0.0.1"}),
        (lambda proxy: proxy.update(host_allowlist=["a"]), {"a"}),
        (lambda proxy: proxy.update(host_whitelist=["b"]), {"b"}),
        (lambda proxy: proxy.host_allowlist.append("c"), {"localhost", "127.0.0.1", "c"}),
    ],
    ids=["default", "list", "deprecated", "appended"],
)
def test_the_configured_hosts_stay(monkeypatch, configure, allowed):
    monkeypatch.setattr(server_extension, "_addresses", set)
    config = Config()
    configure(config.ServerProxy)
    server_extension._link_jupyter_server_extension(SimpleNamespace(config=config))
    setting = ServerProxy(config=config).host_allowlist
    hosts = ("localhost", "127.0.0.1", "a", "b", "c", "d")
    assert {host for host in hosts if setting(request("80"), host)} == allowed


def test_pools_are_listed_once_per_period_and_kept_while_the_service_is_away(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(server_extension, "time", SimpleNamespace(monotonic=lambda: now[0]))
    answers = [{DASHBOARD}, OSError("away"), set()]
    may_answer = threading.Event()
    may_answer.set()

    def addresses():
        assert may_answer.wait(10)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    dashboards = Dashboards(addresses)
    assert DASHBOARD in dashboards
    assert ("10.2.3.9", 8787) not in dashboards
    assert len(answers) == 2
    for left in (1, 0):
        now[0] += 6
        may_answer.clear()
        assert DASHBOARD in dashboards  # at once, and the service is asked in the background
        may_answer.set()
        assert dashboards._answered.wait(10)
        assert len(answers) == left
    assert DASHBOARD not in dashboards


def test_a_service_that_does_not_answer_is_waited_for_a_short_time(monkeypatch):
    monkeypatch.setattr(server_extension, "_LONGEST_WAIT_SECONDS", 0.01)
    released = threading.Event()
    dashboards = Dashboards(lambda: released.wait(10) and {DASHBOARD})
    assert DASHBOARD not in dashboards
    assert DASHBOARD not in dashboards
    released.set()
    assert dashboards._answered.wait(10)
    assert DASHBOARD in dashboards


def test_nothing_is_changed_without_jupyter_server_proxy(monkeypatch):
    monkeypatch.setattr(server_extension, "find_spec", lambda name: None)
    server_extension._link_jupyter_server_extension(None)


async def answers(host, port):
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_a_jupyter_server_shows_the_dashboards_of_its_pools_alone(tmp_path):
    async def answer(request):
        path = request.path.removeprefix("/spawner/v1/labs/ada/dask-pools").strip("/")
        if path == "status":
            return web.Response(text="a dashboard")
        if not path:
            return web.json_response(["big"])
        url = f"http://127.30.0.1:{dashboard.port}"
        return web.json_response({"name": "big", "status": "running", "dashboard_url": url})

    app = web.Application()
    app.router.add_get("/{tail:.*}", answer)
    dashboard, other = TestServer(app, host="127.30.0.1"), TestServer(app, host="127.30.0.2")
    await dashboard.start_server()
    await other.start_server()
    config = tmp_path / "config"
    shutil.copytree(SDK / "jupyter_server_config.d", config / "jupyter_server_config.d")
    variables = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("DATA", "RUNTIME")}
    variables.update(JUPYTER_CONFIG_DIR=str(config), JUPYTER_TOKEN="t", JUPYTERHUB_USER="ada", WASMSPAWNER_TOKEN="t0")
    # jsonschema does without this package, which takes most of the time in which a Jupyter server starts.
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "rfc3987_syntax.py").write_text("raise ImportError('this environment has none')\n")
    paths = os.pathsep.join((str(tmp_path / "without"), str(SDK / "src")))
    variables.update(WASMSPAWNER_URL=str(dashboard.make_url("/spawner/v1")), PYTHONPATH=paths)
    with socket.create_server((own_address(), 0)) as free:
        host, port = free.getsockname()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jupyter_server", "--allow-root", f"--ServerApp.root_dir={tmp_path}"),
        *(f"--ServerApp.ip={host}", f"--ServerApp.port={port}"),
        # Other extensions of this environment take a while to start and have no part in this.
        f"--ServerApp.jpserver_extensions={dict.fromkeys(('jupyterlab', 'jupyter_lsp', 'notebook_shim'), False)}",
        env={**os.environ, **variables},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(30):
            while not await answers(host, port):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        async with aiohttp.ClientSession(headers={"Authorization": "token t"}) as session:
            for target, status in ((dashboard, 200), (other, 403)):
                async with session.get(f"http://{host}:{port}/proxy/{target.host}:{target.port}/status") as response:
                    assert response.status == status, await response.text()
    finally:
        process.terminate()
        await process.wait()
        await dashboard.close()
        await other.close()
