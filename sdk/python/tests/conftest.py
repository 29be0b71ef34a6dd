"""A fake service that gives the answers that a test defines. The end-to-end tests use the real service."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fake_kernels import FakeKernels
from fake_pools import FakePools
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerFactory

from wasmspawner import WasmSpawner, kernel_start, provisioner, retries
from wasmspawner.client import ClientOptions, ServiceClient

PROVISIONER = "wasmspawner-provisioner"
KERNEL_COMMAND = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]


class Script:
    """Answers by `METHOD path`. Each is used once, except the last, which is repeated. Also records the requests."""

    def __init__(self):
        self.answers = {}
        self.requests = []
        self.url = ""
        self._came = asyncio.Condition()

    def on(self, route, *answers):
        self.answers[route] = list(answers)

    def asked(self):
        return [f"{r.method} {r.path}" for r in self.requests]

    async def has_been_asked(self, route, times=1):
        """Wait until these requests have arrived."""
        async with asyncio.timeout(5), self._came:
            await self._came.wait_for(lambda: self.asked().count(route) >= times)

    async def handle(self, request):
        raw = request.raw_path.removeprefix("/spawner/v1")
        self.requests.append(
            SimpleNamespace(method=request.method, path=raw, headers=request.headers, body=await request.read())
        )
        async with self._came:
            self._came.notify_all()
        answers = self.answers.get(f"{request.method} {raw}")
        if not answers:
            return problem(404, "no lab")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if hasattr(answer, "send"):
            return await answer.send(request)
        return answer() if callable(answer) else answer


def problem(status, msg, *loc, type_="", **headers):
    # A function, because a response object can be sent only once.
    type_ = type_ or ("unknown_lab" if status == 404 else "t")
    return web.json_response(
        {"detail": [{"loc": list(loc), "msg": msg, "type": type_}]}, status=status, headers=headers
    )


def refuse(status, msg, *loc, type_="", **headers):
    return lambda: problem(status, msg, *loc, type_=type_, **headers)


def page(status):
    """An answer of a proxy before the service."""
    return lambda: web.Response(status=status, text="<html>not the service</html>", content_type="text/html")


def seconds_ago(seconds):
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


def accept(status):
    return lambda: web.Response(status=status)


def lab(status, **fields):
    return lambda: web.json_response({"username": "ada", "status": status, **fields})


class Stream:
    """An event stream: pieces to send. `cut` ends it without the final chunk, `wait` keeps it open, `before` delays
    it."""

    def __init__(self, *pieces, cut=False, wait=None, before=None):
        self.pieces, self.cut, self.wait, self.before = pieces, cut, wait, before

    async def send(self, request):
        if self.before is not None:
            await self.before.wait()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in self.pieces:
            await response.write(piece.encode())
        if self.wait is not None:
            await self.wait.wait()
        if self.cut:
            request.transport.abort()
        return response


class Lost:
    """A request that arrives but is not answered: the connection breaks. `then` is still called."""

    def __init__(self, then=lambda: None):
        self.then = then

    async def send(self, request):
        self.then()
        request.transport.abort()
        return web.Response()


@pytest.fixture
def short_pauses(monkeypatch):
    """Pauses between attempts, and between the polls of a kernel, are a twentieth of what they are.

    Tests with this are about what is asked for and in which order. How long the pauses are is in test_retries.py."""

    def backoff(failures, *, first, longest):
        return usual(failures, first=first / 20, longest=longest / 20)

    usual = retries.backoff
    monkeypatch.setattr(retries, "backoff", backoff)
    for module in (kernel_start, provisioner):
        monkeypatch.setattr(module, "_POLL_INTERVAL", module._POLL_INTERVAL / 20)


@pytest.fixture
async def service(short_pauses):
    script = Script()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", script.handle)
    server = TestServer(app)
    await server.start_server()
    script.url = str(server.make_url("/spawner/v1"))
    yield script
    for client in ServiceClient._shared.pop(asyncio.get_running_loop(), {}).values():
        await client.close()
    await server.close()


@pytest.fixture
async def client(service):
    client = ServiceClient(ClientOptions(api_url=service.url, retry_for=0.3))
    yield client
    await client.close()


@pytest.fixture
def make_spawner(service):
    def make(name):
        auth_state = {}

        async def get_auth_state():
            return auth_state.get("value")

        user = SimpleNamespace(name=name, escaped_name=name, url=f"/user/{name}/", get_auth_state=get_auth_state)
        hub = SimpleNamespace(public_host="", api_url="http://hub:8081/hub/api", base_url="/hub/")
        spawner = WasmSpawner(
            user=user,
            hub=hub,
            api_url=service.url,
            token="hub-token",
            retry_for=0.3,
            stop_timeout=5,
            oauth_client_id="c",
        )
        spawner.auth_state = auth_state
        spawner.api_token = "server-token"  # JupyterHub sets it before it calls start()
        return spawner

    return make


@pytest.fixture
def spawner(make_spawner):
    return make_spawner("ada")


# Kernels


@pytest.fixture
async def fake(short_pauses):
    fake = FakeKernels()
    server = await fake.serve()
    yield fake
    await server.close()


@pytest.fixture
def lab_env(fake, monkeypatch):
    """The variables of a lab whose service is the fixture `fake` of a test's module."""
    monkeypatch.setenv("WASMSPAWNER_URL", fake.url)
    monkeypatch.setenv("WASMSPAWNER_TOKEN", "t0")
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    for name in ("WASMSPAWNER_TOKEN_FILE", "JUPYTERHUB_SERVER_NAME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
async def manager(lab_env, tmp_path):
    """Makes managers of a kernel whose kernel.json has this stanza."""
    entry = EntryPoint(
        PROVISIONER, "wasmspawner.provisioner:WasmSpawnerProvisioner", KernelProvisionerFactory.GROUP_NAME
    )
    lab_env.setitem(KernelProvisionerFactory.provisioners, PROVISIONER, entry)

    made = []

    def make(config=None, *, argv=KERNEL_COMMAND, env=None, metadata=None, manager_class=AsyncKernelManager, **kwargs):
        folder = tmp_path / "kernels" / "test"
        folder.mkdir(parents=True, exist_ok=True)
        stanza = {"kernel_provisioner": {"provisioner_name": PROVISIONER, "config": config or {}}, **(metadata or {})}
        spec = {"argv": argv, "display_name": "Test", "language": "python", "env": env or {}, "metadata": stanza}
        (folder / "kernel.json").write_text(json.dumps(spec))
        specs = KernelSpecManager(kernel_dirs=[str(tmp_path / "kernels")], ensure_native_kernel=False)
        km = manager_class(
            kernel_name="test",
            kernel_spec_manager=specs,
            connection_file=str(tmp_path / "connection.json"),
            shutdown_wait_time=0.2,
            **kwargs,
        )
        made.append(km)
        return km

    yield make
    for km in made:
        if isinstance(km, AsyncKernelManager):  # the others are ended by their tests
            await km.cleanup_resources()


# Dask pools


@pytest.fixture
async def pools(tmp_path, monkeypatch):
    fake = FakePools(tmp_path)
    await fake.serve()
    for name in ("WASMSPAWNER_TOKEN_FILE", "JUPYTERHUB_SERVER_NAME", "JUPYTERHUB_SERVICE_PREFIX", "JUPYTER_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WASMSPAWNER_URL", fake.url)
    monkeypatch.setenv("WASMSPAWNER_TOKEN", "t0")
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    yield fake
    await fake.close()
