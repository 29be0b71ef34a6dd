"""A service without a Hub, on a simulated cluster of one machine."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import cluster_api
import requests
from world import eventually, free_port

import compiled_policies
import stack
import toolchain


class LoneService:
    """The service. It runs in a `with service.running()`; its state stays from one run to the next."""

    def __init__(self, folder: Path, adapt) -> None:
        state = folder / "state"
        state.mkdir(mode=0o700)
        self.settings = stack.Settings(
            state=state,
            program=toolchain.target_dir() / "debug/wasmspawner",
            venv=Path(sys.executable).parent,
            spawner_port=free_port(),
            runtime="simulated",
            hub=False,
            adapt=adapt,
        )

    @contextmanager
    def running(self):
        """The time in which it runs; yields its process."""
        process = compiled_policies.start_service(self.settings)
        try:
            yield process
        finally:
            process.stop(30)

    def ask(self, method: str, path: str, body=None) -> requests.Response:
        """A request by an administrator."""
        headers = {"Authorization": f"Bearer {stack.token(self.settings, '--admin')}"}
        url = f"{self.settings.api_url}{path}"
        return requests.request(method, url, headers=headers, json=body, timeout=60, allow_redirects=False)

    def get(self, path: str):
        """The JSON of a good answer."""
        answer = self.ask("GET", path)
        answer.raise_for_status()
        return answer.json()

    def command(self, *arguments: str) -> str:
        """What a command of the program prints, with an administrator's token."""
        access = ("--state-dir", self.settings.state)
        return subprocess.run(
            [self.settings.program, *arguments, *access], stdout=subprocess.PIPE, check=True, text=True, timeout=60
        ).stdout

    def start_lab(self, user: str, **options) -> dict:
        """Start a lab; returns what the service says about it once it runs."""
        answer = self.ask("POST", f"/labs/{user}/spawn", {"options": options})
        assert answer.status_code == 303, answer.text
        return eventually(lambda: self._lab_if(user, "running"), what=f"the lab of {user} runs")

    def failed_lab(self, user: str, **options) -> dict:
        """Start a lab that fails; returns what the service says about it then."""
        answer = self.ask("POST", f"/labs/{user}/spawn", {"options": options})
        assert answer.status_code == 303, answer.text
        return eventually(lambda: self._lab_if(user, "failed"), what=f"the lab of {user} fails")

    def _lab_if(self, user: str, status: str):
        lab = self.get(f"/labs/{user}")
        assert lab["status"] in ("starting", status), lab
        return lab if lab["status"] == status else None

    def patch_node(self, patch: dict, part: str = "") -> None:
        """Change the only node of the cluster."""
        (node,) = self.ask_cluster("GET", "/api/v1/nodes").json()["items"]
        path = f"/api/v1/nodes/{node['metadata']['name']}{part}"
        self.ask_cluster("PATCH", path, json=patch, headers={"Content-Type": "application/merge-patch+json"})

    def ask_cluster(self, method: str, path: str, **options) -> requests.Response:
        """A request to the cluster's own API, which has to succeed."""
        return cluster_api.ask(self.settings.state, method, path, **options)
