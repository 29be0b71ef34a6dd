"""The service as a process in the node's network, and a client of its API."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import requests
from node import Node

import toolchain

READY = 120.0  # seconds; includes the compilation of the policies


@dataclass
class Event:
    """A server-sent event."""

    kind: str
    data: str

    @property
    def stage(self) -> dict:
        """The stage that the event reports."""
        return json.loads(self.data)


class LabService:
    """The service with a configuration, whose addresses are the node's."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self.folder = node, folder
        self.program = toolchain.target_dir() / "debug/wasmspawner"
        self.tokens: dict[tuple[str, ...], str] = {}

    def start(self, config: dict) -> None:
        """Start it, and wait until it is ready."""
        self.config = config
        self.token("--user", "ada")  # makes the file with tokens
        file = self.folder / "wasmspawner.yaml"
        file.write_text(json.dumps(config, indent=2))  # JSON is YAML
        command = [self.program, "serve", "--config", file, "--state-dir", self.folder]
        with open(self.folder / "service.log", "ab") as log:
            self.process = self.node.popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.node.wait("kubelet", self._is_ready, READY)

    def end(self) -> None:
        """Ask it to end, and wait until it has."""
        self.process.terminate()
        self.process.wait(60)

    def spawn(self, user: str, profile: str, **options: str) -> requests.Response:
        """Ask for a lab."""
        prefix = f"/user/{user}/"
        env = {"JUPYTERHUB_SERVICE_PREFIX": prefix, "JUPYTERHUB_SERVICE_URL": f"http://0.0.0.0:8888{prefix}"}
        body = {"options": {"profile": profile} | options, "env": env}
        return self._ask("POST", user, "/spawn", json=body, allow_redirects=False)

    def stop(self, user: str) -> requests.Response:
        """Stop a lab."""
        return self._ask("DELETE", user)

    def release_volumes(self, user: str) -> dict:
        """Do what JupyterHub does when it deletes the user's server: delete the volumes that go with it."""
        answer = self._ask("DELETE", user, "/volumes", token=self.token("--hub"))
        answer.raise_for_status()
        return answer.json()

    def history(self, user: str) -> list[dict]:
        """What has happened to the user's lab, the latest operation first."""
        return self._ask("GET", user, "/history").json()

    def lab(self, user: str) -> dict:
        """The lab as the service reports it; empty if there is none."""
        answer = self._ask("GET", user)
        return {} if answer.status_code == 404 else answer.json()

    def ask_kernel(self, method: str, user: str, kernel: str, path: str = "", **options) -> requests.Response:
        """Ask something about a kernel of the user's lab."""
        return self._ask(method, user, f"/kernels/{kernel}{path}", **options)

    def ask_pool(self, method: str, user: str, pool: str, path: str = "", **options) -> requests.Response:
        """Ask something about a Dask pool of the user's lab."""
        return self._ask(method, user, f"/dask-pools/{pool}{path}", **options)

    def prepulls(self) -> dict:
        """What nodes pull before somebody asks for it."""
        url = f"http://{self.config['http']['listen']}/spawner/v1/prepulls"
        answer = requests.get(url, headers={"Authorization": f"Bearer {self.token('--hub')}"}, timeout=30)
        answer.raise_for_status()
        return answer.json()

    def events(self, user: str) -> list[Event]:
        """All events of the lab's operation, until it ends."""
        events, kind = [], ""
        with self._ask("GET", user, "/events", stream=True, timeout=120) as answer:
            answer.raise_for_status()
            for line in answer.iter_lines(decode_unicode=True):
                field, _, value = line.partition(": ")
                if field == "event":
                    kind = value
                elif field == "data":
                    events.append(Event(kind, value))
        return events

    def token(self, *of: str) -> str:
        """A token, as `wasmspawner token` makes it; each is made only once."""
        if of not in self.tokens:
            command = [self.program, "token", "--state-dir", self.folder, *of]
            self.tokens[of] = subprocess.check_output(command, text=True).strip()
        return self.tokens[of]

    def _ask(self, method: str, user: str, path: str = "", token: str = "", **options) -> requests.Response:
        url = f"http://{self.config['http']['listen']}/spawner/v1/labs/{user}{path}"
        headers = {"Authorization": f"Bearer {token or self.token('--user', user)}"}
        return requests.request(method, url, headers=headers, **({"timeout": 30} | options))

    def _is_ready(self) -> bool:
        if (code := self.process.poll()) is not None:
            log = (self.folder / "service.log").read_text()
            raise AssertionError(f"the service ended with {code}:\n{log[-3000:]}")
        try:
            return requests.get(f"http://{self.config['http']['health_listen']}/readyz", timeout=2).status_code == 200
        except requests.RequestException:
            return False
