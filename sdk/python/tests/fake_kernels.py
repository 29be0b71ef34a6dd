"""A fake of the service's routes for kernels, with which tests decide what happens to a kernel.

The end-to-end tests hold the provisioner against the real service.
"""

import asyncio
import json
import os
from types import SimpleNamespace

from aiohttp import web
from aiohttp.test_utils import TestServer

PORTS = {"shell_port": 5001, "iopub_port": 5002, "stdin_port": 5003, "control_port": 5004, "hb_port": 5005}


def own_address():
    """A loopback address that no other process uses, so that a port which is free there stays free."""
    return f"127.220.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"


def problem(status, msg, type_="t", **headers):
    return web.json_response({"detail": [{"loc": [], "msg": msg, "type": type_}]}, status=status, headers=headers)


class FakeKernels:
    """Kernels run as soon as they are created, unless `held`. `answers` are given first, by `METHOD`."""

    def __init__(self):
        self.url = ""
        self.kernels = {}
        self.requests = []
        self.answers = {}
        self.signals = []
        self.held = {}  # fields of new kernels
        self.has_launcher = True
        self.polls_until_gone = 2
        self._came = asyncio.Condition()

    def asked(self, *methods):
        """The requests so far, of all methods except GET if none is given."""
        return [f"{r.method} {r.path}" for r in self.requests if r.method in (methods or ("POST", "DELETE"))]

    async def has_been_asked(self, method, times=1):
        async with asyncio.timeout(10), self._came:
            await self._came.wait_for(lambda: len(self.asked(method)) >= times)

    def only(self):
        (kernel,) = self.kernels.values()
        return kernel

    def end(self, exit_code):
        self.only()["process"].update(state="ended", exit_code=exit_code)

    async def handle(self, request):
        path = request.raw_path.removeprefix("/spawner/v1")
        body = await request.read()
        self.requests.append(
            SimpleNamespace(
                method=request.method, path=path, headers=request.headers, body=json.loads(body) if body else None
            )
        )
        async with self._came:
            self._came.notify_all()
        if answers := self.answers.get(request.method):
            answer = answers.pop(0)(request)
            if answer is not None:
                return answer
        lab, _, rest = path.partition("/kernels/")
        assert lab in ("/labs/ada", "/labs/ada/servers/gpu")
        kernel_id, _, verb = rest.partition("/")
        kernel = self.kernels.get(kernel_id)
        if request.method == "POST" and not verb:
            if kernel:
                return problem(409, "there is a kernel of this id", "kernel_exists")
            return web.json_response(self.create(kernel_id), status=201)
        if kernel is None:
            return problem(404, "no such kernel", "unknown_kernel")
        return getattr(self, f"{request.method.lower()}_{verb}")(kernel, self.requests[-1].body)

    def create(self, kernel_id):
        connection = {"transport": "tcp", "ip": "127.0.0.1", **PORTS}
        process = {"number": 1, "state": "running", "exit_code": None}
        self.kernels[kernel_id] = {
            "id": kernel_id,
            "kernel_name": "test",
            "status": "running",
            "stage": "ready",
            "reason": None,
            "message": None,
            "progress": 100,
            "process": process,
            "connection": connection,
            **self.held,
        }
        return self.kernels[kernel_id]

    def get_(self, kernel, _body):
        if kernel["status"] == "terminating":
            self.polls_until_gone -= 1
            if self.polls_until_gone <= 0:
                self.kernels.pop(kernel["id"])
                return problem(404, "no such kernel", "unknown_kernel")
        return web.json_response(kernel)

    def delete_(self, kernel, _body):
        kernel["status"] = "terminating"
        return web.Response(status=202)

    def post_signal(self, kernel, body):
        if not kernel["process"]:
            return problem(409, "the launcher is not connected", "no_launcher")
        if kernel["process"]["state"] != "running":
            return problem(409, "no process runs", "not_running")
        self.signals.append(body["signum"])
        if body["signum"] in (9, 15):
            self.end(-body["signum"])
        return web.Response(status=204)

    def post_restart(self, kernel, _body):
        if not self.has_launcher:
            return problem(409, "this pod cannot start its kernel anew", "no_launcher")
        number = kernel["process"]["number"] + 1
        kernel["process"] = {"number": number, "state": "running", "exit_code": None}
        return web.json_response(kernel, status=202)

    async def serve(self):
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self.handle)
        server = TestServer(app)
        await server.start_server()
        self.url = str(server.make_url("/spawner/v1"))
        return server
