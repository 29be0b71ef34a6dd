"""A service with one lab, and what a test does to the lab's Dask pools behind their backs: `with
DaskSite(folder).running()`."""

import hashlib
import json
import os
import secrets
import signal
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from kernel_site import USER, KernelSite

import compiled_policies
import stack
import toolchain

# How many workers a user may have.
MOST_WORKERS = 8
KINDS = (
    "/api/v1/pods",
    "/api/v1/secrets",
    "/api/v1/configmaps",
    "/api/v1/persistentvolumeclaims",
    "/apis/networking.k8s.io/v1/networkpolicies",
)


class DaskSite(KernelSite):
    """The service and the lab. Pods outlive the service."""

    def __init__(self, folder: Path, most_workers: int = MOST_WORKERS) -> None:
        super().__init__(folder)
        self.lone.settings.keep_labs = True
        self._most_workers = most_workers

    @contextmanager
    def running(self):
        """The time in which service and lab run. The service may be killed and started in between."""
        self.start_service()
        try:
            self.lone.start_lab(USER, image="minimal")
            yield self
        finally:
            if self.service.child.poll() is not None:
                self.start_service()
            stack.stop_all_labs(self.lone.settings, 30)
            self.service.stop(30)

    def start_service(self) -> None:
        """Start the service, and wait until it is ready."""
        self.service = compiled_policies.start_service(self.lone.settings)

    def kill_service(self) -> None:
        """Kill the service, which cannot do anything about that."""
        self.service.stop(30, signal.SIGKILL)

    def environment(self, user: str = USER) -> dict[str, str]:
        """The variables of the lab of a user."""
        settings = self.lone.settings
        lab = {
            "JUPYTERHUB_USER": user,
            "WASMSPAWNER_TOKEN": stack.token(settings, "--user", user),
            # Where certificates are kept.
            "JUPYTER_DATA_DIR": str(settings.state / "data" / user),
        }
        return super().environment() | lab

    def add_guest(self, user: str) -> None:
        """Make a token of a user of the group `guests`, who may have labs and no pools."""
        token = secrets.token_hex()
        entry = {
            "sha256": hashlib.sha256(token.encode()).hexdigest(),
            "user": user,
            "scopes": ["exec:notebook"],
            "uid": os.getuid() or 1000,
            "gid": os.getgid() or 1000,
            "groups": [{"name": "guests"}],
        }
        with open(self.lone.settings.state / "tokens.yaml", "a") as file:
            file.write(f"- {json.dumps(entry)}\n")
        self.lone.settings.tokens["--user", user] = token

    def pool(self, name: str, user: str = USER) -> dict | None:
        """What the service says about a pool; None if there is none."""
        answer = self.lone.ask("GET", f"/labs/{user}/dask-pools/{name}")
        return answer.json() if answer.ok else None

    def objects(self, user: str) -> list[str]:
        """The objects of a user in the cluster."""
        selector = {"labelSelector": f"wasmspawner.io/user={user}"}
        answers = [self.lone.ask_cluster("GET", path, params=selector).json() for path in KINDS]
        return [item["metadata"]["name"] for answer in answers for item in answer["items"]]

    def workers(self) -> list[dict]:
        """The pods of workers."""
        selector = {"labelSelector": "app.kubernetes.io/component=dask-worker"}
        return self.lone.ask_cluster("GET", "/api/v1/pods", params=selector).json()["items"]

    def delete_pod(self, name: str) -> None:
        """Delete a pod by hand."""
        (pod,) = [pod for pod in self.workers() if pod["metadata"]["name"] == name]
        self.lone.ask_cluster("DELETE", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{name}")

    def processes(self, user: str) -> list[psutil.Process]:
        """The processes of the pods of a user's lab and its pools."""
        home, found = str(self.homes / user), []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get("WASMSPAWNER_MOUNT_HOME") == home:
                    found.append(process)
        return found

    def _adapt(self, config: dict) -> None:
        super()._adapt(config)
        _, pods = config["embedded"]["images"]
        pods["env"]["PYTHONPATH"] = str(Path(__file__).parent)  # for `dask_tasks.py`
        config["limits"]["per_user"] |= {"dask_workers": self._most_workers, "dask_pools": 6}
        config["policies"].append(
            {
                "name": "no-pools-for-guests",
                "path": str(toolchain.policy("policy-deny-group")),
                "config": {"deny": ["guests"], "actions": ["dask-pool"], "message": "Guests have no pools."},
            }
        )
