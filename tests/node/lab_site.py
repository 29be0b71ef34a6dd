"""The service as a process on the node, with the permissions of `deploy/permissions`, and a client of its API."""

import base64
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import images
import registry
import requests
from node import Node

import toolchain
from toolchain import ROOT

API_PORT, HEALTH_PORT = 8090, 8091
NAMESPACE = "wasmspawner"
PULL_SECRET = "registry-password"
WRONG_PASSWORD = "wrong-password"
READY = 120.0  # seconds; includes the compilation of the policies
# A web server that answers the probe, and can do something besides.
ANSWER = 'mkdir -p "/tmp$JUPYTERHUB_SERVICE_PREFIX" && touch "/tmp$JUPYTERHUB_SERVICE_PREFIX/api" && '
SERVE = ANSWER + "exec httpd -f -p 8888 -h /tmp"
# The same, until somebody makes the file `end`.
MORTAL = ANSWER + "httpd -p 8888 -h /tmp; until rm /tmp/end 2>/dev/null; do sleep 0.2; done; exit 3"
FILL_MEMORY = "dd if=/dev/zero of=/dev/null bs=400M count=1"
JUPYTERLAB = (
    "exec jupyter-lab --ip=0.0.0.0 --port=8888 --no-browser"
    ' --ServerApp.base_url="$JUPYTERHUB_SERVICE_PREFIX" --IdentityProvider.token=the-token'
)


@dataclass
class Event:
    """A server-sent event."""

    kind: str
    data: str

    @property
    def stage(self) -> dict:
        """The stage that the event reports."""
        return json.loads(self.data)


class LabSite:
    """A site whose profiles are what can happen to a lab. For a `with` statement."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self.folder = node, folder
        self.program = toolchain.target_dir() / "debug/wasmspawner"
        self.tokens: dict[str, str] = {}

    def __enter__(self) -> "LabSite":
        lab = self.node.push_image(images.lab())
        self._prepare_cluster()
        file = self.folder / "wasmspawner.yaml"
        file.write_text(json.dumps(self._config(lab), indent=2))  # JSON is YAML
        self.log = open(self.folder / "service.log", "wb")
        self.token("ada")  # makes the file with tokens
        command = [self.program, "serve", "--config", file, "--state-dir", self.folder]
        self.process = self.node.popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.node.wait("kubelet", self._is_ready, READY)
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.log.close()

    def spawn(self, user: str, profile: str) -> requests.Response:
        """Ask for a lab."""
        body = {"options": {"profile": profile}, "env": {"JUPYTERHUB_SERVICE_PREFIX": f"/user/{user}/"}}
        return self._ask("POST", user, "/spawn", json=body, allow_redirects=False)

    def stop(self, user: str) -> requests.Response:
        """Stop a lab."""
        return self._ask("DELETE", user)

    def lab(self, user: str) -> dict:
        """The lab as the service reports it; empty if there is none."""
        answer = self._ask("GET", user)
        return {} if answer.status_code == 404 else answer.json()

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

    def namespace(self, user: str) -> str:
        """The namespace of the user's lab."""
        return f"nublado-{user}"

    def pod(self, user: str) -> dict:
        """The lab's pod; empty if there is none."""
        return self.node.get("pod", f"nb-{user}", "-n", self.namespace(user))

    def token(self, user: str) -> str:
        """A token of the user; each is made only once."""
        if user not in self.tokens:
            command = [self.program, "token", "--state-dir", self.folder, "--user", user]
            self.tokens[user] = subprocess.check_output(command, text=True).strip()
        return self.tokens[user]

    def _ask(self, method: str, user: str, path: str = "", **options) -> requests.Response:
        url = f"http://{self.node.address}:{API_PORT}/spawner/v1/labs/{user}{path}"
        headers = {"Authorization": f"Bearer {self.token(user)}"}
        return requests.request(method, url, headers=headers, **({"timeout": 30} | options))

    def _is_ready(self) -> bool:
        if (code := self.process.poll()) is not None:
            log = (self.folder / "service.log").read_text()
            raise AssertionError(f"the service ended with {code}:\n{log[-3000:]}")
        try:
            return requests.get(f"http://{self.node.address}:{HEALTH_PORT}/readyz", timeout=2).status_code == 200
        except requests.RequestException:
            return False

    def _prepare_cluster(self) -> None:
        node = self.node
        credentials = base64.b64encode(f"{registry.USER}:{WRONG_PASSWORD}".encode()).decode()
        pull = {"auths": {node.protected_registry: {"auth": credentials}}}
        node.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "wasmspawner", "namespace": NAMESPACE},
            },
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": PULL_SECRET, "namespace": NAMESPACE},
                "type": "kubernetes.io/dockerconfigjson",
                "stringData": {".dockerconfigjson": json.dumps(pull)},
            },
        )
        for file in ("crds.yaml", "permissions/cluster-wide.yaml", "admission-policy.yaml"):
            node.kubectl("apply", "-f", str(ROOT / "deploy" / file))
        node.kubectl("wait", "--for=condition=Established", "crd", "--all")

    def _kubeconfig(self) -> Path:
        """A kubeconfig of the service's account."""
        token = self.node.kubectl("create", "token", "wasmspawner", "-n", NAMESPACE, "--duration=24h").strip()
        config = json.loads(self.node.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        file = self.folder / "kubeconfig"
        file.write_text(json.dumps(config))
        return file

    def _config(self, lab: str) -> dict:
        shell = self.node.shell_image
        locked = lab.replace(self.node.registry, self.node.protected_registry)
        profiles = {
            "jupyterlab": {"image": lab, "cmd": ["sh", "-c", JUPYTERLAB]},
            "plain": {"image": shell, "cmd": ["sh", "-c", SERVE]},
            "missing": {"image": f"{self.node.registry}/missing:1"},
            "locked": {"image": locked},
            "crashing": {"image": shell, "cmd": ["sh", "-c", "echo a last word; exit 3"]},
            "greedy": {"image": shell, "cmd": ["sh", "-c", f"exec {FILL_MEMORY}"], "mem_limit": "64M"},
            "mortal": {"image": shell, "cmd": ["sh", "-c", MORTAL]},
            "huge": {"image": shell, "cpu_guarantee": 500, "cpu_limit": 500},
            "beyond-quota": {"image": shell, "mem_limit": "64G"},
        }
        # Only one user's init container fails.
        initial = ["sh", "-c", 'if test "$0" = fay; then echo no home for fay; exit 4; fi', "{username}"]
        default = {
            "profile_list": [
                {
                    "display_name": name,
                    "slug": name,
                    "kubespawner_override": {"mem_limit": "1G", "cpu_limit": 1, "cpu_guarantee": 0.05} | override,
                }
                for name, override in profiles.items()
            ],
            "init_containers": [{"name": "home", "image": shell, "command": initial}],
            "quota": {"default": {"memory": "8Gi"}},
        }
        return {
            "http": {
                "listen": f"{self.node.address}:{API_PORT}",
                "health_listen": f"{self.node.address}:{HEALTH_PORT}",
            },
            "auth": {
                "modes": ["static"],
                "static": {"tokens_file": str(self.folder / "tokens.yaml")},
                "identities": {"default": {"uid": 1000, "gid": 1000}},
            },
            "kubernetes": {"kubeconfig": str(self._kubeconfig()), "namespace": NAMESPACE},
            "lab": {
                "env": {"HOME": "/tmp"},
                "secrets": [{"name": PULL_SECRET, "key": ".dockerconfigjson", "pull_secret": True}],
                "termination_grace_period_seconds": 5,
                "security": {"no_app_armor": True},
            },
            "policies": [
                {"name": "default", "path": str(toolchain.policy("policy-default")), "config": default},
            ],
            # A lab that cannot be placed fails only when the whole spawn has taken too long.
            "limits": {"spawn": "90s", "restarts": 1},
            "state_dir": str(self.folder),
            "telemetry": {"format": "text", "filter": "info,wasmspawner=debug"},
        }


def eventually(condition, what: str, seconds: float = 60.0):
    """The condition's first true value. Fails after `seconds`."""
    give_up = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < give_up, f"{what} did not hold within {seconds} s"
        time.sleep(0.1)
    return value
