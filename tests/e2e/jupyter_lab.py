"""A user's JupyterLab through the Hub's proxy: its REST API, and messages to its kernels."""

import asyncio
import json
import uuid
from urllib.parse import quote

import requests
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect


class JupyterLab:
    """The Jupyter server of a user's default server."""

    def __init__(self, world, user: str) -> None:
        self.url = f"{world.url}/user/{quote(user, safe='@')}"
        self.headers = {"Authorization": f"token {world.hub_token}"}

    def ask(self, method: str, path: str, **options) -> requests.Response:
        return requests.request(method, f"{self.url}/api{path}", headers=self.headers, timeout=120, **options)

    def start_kernel(self, name: str) -> str:
        """Start a kernel of this kernel spec. Returns its id."""
        answer = self.ask("POST", "/kernels", json={"name": name})
        assert answer.ok, answer.text
        return answer.json()["id"]

    def kernel(self, kernel: str) -> dict | None:
        answer = self.ask("GET", f"/kernels/{kernel}")
        return answer.json() if answer.ok else None

    def run(self, kernel: str, code: str, *, interrupt_at: str = "") -> str:
        """Run code as a notebook's cell does. Returns what it printed, and the name of its error. `interrupt_at`: the
        kernel is interrupted once the cell has printed this."""
        return asyncio.run(asyncio.wait_for(self._run(kernel, code, interrupt_at), 60))

    async def _run(self, kernel: str, code: str, interrupt_at: str) -> str:
        url = f"{self.url.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels"
        socket = await websocket_connect(HTTPRequest(url, headers=self.headers, connect_timeout=30))
        request = uuid.uuid4().hex
        header = {
            "msg_id": request,
            "msg_type": "execute_request",
            "session": request,
            "username": "",
            "version": "5.3",
        }
        content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False, "stop_on_error": True}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        await socket.write_message(json.dumps(message))
        printed = ""
        try:
            while True:
                text = await socket.read_message()
                assert text is not None, f"the connection to the kernel was closed after {printed!r}"
                answer = json.loads(text)
                if answer["parent_header"].get("msg_id") != request:
                    continue
                kind, content = answer["msg_type"], answer["content"]
                if kind == "stream":
                    printed += content["text"]
                    if interrupt_at and interrupt_at in printed:
                        interrupt_at = ""
                        answer = await asyncio.to_thread(self.ask, "POST", f"/kernels/{kernel}/interrupt")
                        assert answer.ok, answer.text
                elif kind == "error":
                    printed += content["ename"]
                elif kind == "status" and content["execution_state"] == "idle":
                    return printed
        finally:
            socket.close()
