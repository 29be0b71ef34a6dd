"""The provisioner and the launcher together, with an IPython kernel, and a fake of the service between them."""

import asyncio
import json
import os
import shutil
import socket
import sys
from contextlib import ExitStack

import pytest
from aiohttp import web
from fake_kernels import PORTS, FakeKernels, own_address

from wasmspawner import kernel_launcher, service_link

# Not with `--HistoryManager.enabled=False`: ipykernel 7.4 then often takes ten seconds to end, local kernels too.
IPYKERNEL = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]


def free_ports(names):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((own_address(), 0))) for _ in names]
        return {name: s.getsockname()[1] for name, s in zip(names, sockets, strict=True)}


class LaunchedKernels(FakeKernels):
    """Runs the launcher for each kernel, and takes and gives its requests as the service does."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.ports = free_ports(PORTS)
        self.orders = asyncio.Queue()
        self.launchers = []

    async def handle(self, request):
        if not request.path.endswith("/launcher"):
            return await super().handle(request)
        assert request.headers["Authorization"] == "Bearer launcher-token"
        if request.method == "PUT":
            report = {"exit_code": None, **await request.json()}
            if report["number"] >= self.only()["process"]["number"]:
                self.only()["process"] = report
            return web.Response(status=204)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while order := await self.orders.get():
            await response.write(order.encode())
        return response

    def order(self, name, **data):
        self.orders.put_nowait(f"event: {name}\ndata: {json.dumps(data)}\n\n")

    def create(self, kernel_id):
        body = self.requests[-1].body
        address = {"transport": "tcp", "ip": own_address(), **self.ports}
        kernel = super().create(kernel_id)
        kernel.update(connection=address, process={"number": 1, "state": "starting", "exit_code": None})
        shutil.copy(kernel_launcher.__file__, self.folder / "launcher.py")
        shutil.copy(service_link.__file__, self.folder)
        (self.folder / "token").write_text("launcher-token")
        (self.folder / "connection.json").write_text(json.dumps({**address, "ip": "0.0.0.0", **body["connection"]}))
        launch = {name: body[name] for name in ("command", "env", "working_dir")}
        launch.update(url=f"{self.url}/labs/ada/kernels/{kernel_id}", linger_seconds=60, stop_seconds=5)
        (self.folder / "launch.json").write_text(json.dumps(launch))
        self.launchers.append(asyncio.create_task(self.launch()))
        return kernel

    async def launch(self):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(self.folder / "launcher.py")), env={**os.environ, "POD_IP": own_address()}
        )
        try:
            await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            await asyncio.wait_for(process.wait(), 20)

    def post_signal(self, kernel, body):
        self.order("signal", number=kernel["process"]["number"], signum=body["signum"])
        return web.Response(status=204)

    def post_restart(self, kernel, _body):
        # As the service does: the new process is known at once, and one that is to be started is not started twice.
        if kernel["process"]["state"] != "starting":
            number = kernel["process"]["number"] + 1
            kernel["process"] = {"number": number, "state": "starting", "exit_code": None}
            self.order("launch", number=number)
        return web.json_response(kernel, status=202)


@pytest.fixture
async def fake(tmp_path):
    folder = tmp_path / "launcher"
    folder.mkdir()
    fake = LaunchedKernels(folder)
    server = await fake.serve()
    yield fake
    fake.orders.put_nowait("")
    for launcher in fake.launchers:
        launcher.cancel()
    await asyncio.gather(*fake.launchers, return_exceptions=True)
    await server.close()


async def run(client, code, on_output=None):
    """Run a cell. Returns the value of `result`, or the name of the exception."""
    request = client.execute(code, store_history=False, user_expressions={"result": "result"})
    while True:
        message = await client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "stream":
            await on_output()
        elif message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            break
    # `wait_for_ready` may have asked more than once; it takes the first of its replies only.
    reply = {"parent_header": {}}
    while reply["parent_header"].get("msg_id") != request:
        reply = await client.get_shell_msg(timeout=60)
    reply = reply["content"]
    if reply["status"] == "error":
        return reply["ename"]
    return reply["user_expressions"]["result"]["data"]["text/plain"]


@pytest.mark.parametrize("encryption", ["disabled", "required"])
async def test_a_kernel_computes_is_interrupted_is_restarted_and_ends(fake, manager, tmp_path, encryption):
    km = manager(argv=IPYKERNEL, metadata={"supported_encryption": ["curve"]}, transport_encryption=encryption)
    km.shutdown_wait_time = 60
    await km.start_kernel(env={"GREETING": "hello", "IPYTHONDIR": str(tmp_path / "ipython")})
    assert (km.curve_publickey is None) == (encryption == "disabled")
    client = km.client()
    client.start_channels()
    await client.wait_for_ready(timeout=60)
    assert await run(client, "import os; result = os.environ['GREETING']") == "'hello'"
    asleep = "import time; print('asleep', flush=True); time.sleep(60)"
    assert await run(client, asleep, on_output=km.interrupt_kernel) == "KeyboardInterrupt"
    first = await run(client, "result = os.getpid()")

    await km.restart_kernel()
    await client.wait_for_ready(timeout=60)
    assert await run(client, "import os; result = os.getpid()") != first
    assert len(fake.launchers) == 1

    client.stop_channels()
    await km.shutdown_kernel()
    assert (fake.only()["process"]["number"], fake.only()["process"]["state"]) == (2, "ended")
    assert fake.asked("DELETE") == [f"DELETE /labs/ada/kernels/{km.kernel_id}"]
