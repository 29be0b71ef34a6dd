"""An installation as a site has it: the service in its pod, installed by the chart from its own image, and a JupyterHub."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import images
import page
import yaml
from lab_site import eventually
from node import Node

import toolchain

sys.path.insert(0, str(toolchain.ROOT / "tests/chart"))

import helm

Refused = helm.Refused
NAMESPACE = "jupyterhub"
RELEASE = "wasmspawner"
CHART = toolchain.ROOT / "deploy/chart"
HERE = Path(__file__).resolve().parent
INSTALL = 300.0  # seconds


def container_image() -> Path:
    """The layout of the service's image with its tag. `make image` makes it."""
    layout = toolchain.target_dir() / "container/wasmspawner"
    index = json.loads((layout / "index.json").read_text())
    tag = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
    return Path(f"{layout}:{tag}")


class Installation:
    """The release on the node, and a JupyterHub as a program in the node's network. For a `with` statement."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self.folder = node, folder
        self.helm = helm.Helm(folder / "helm", str(node.kubeconfig))
        self.hub_token, self.test_token = secrets.token_hex(16), secrets.token_hex(16)
        self.password = secrets.token_hex(8)
        self.replicas = 1
        self.hub: subprocess.Popen | None = None

    def __enter__(self) -> "Installation":
        source = container_image()
        self.version = str(source).rsplit(":")[-1]
        self.node.push(str(source), f"wasmspawner:{self.version}")
        self.lab_image = self.node.push_image(images.lab())
        (self.folder / "deploy").symlink_to(toolchain.ROOT / "deploy")
        self.write_values()
        # Sites before this one had the definitions without Helm, which then takes them not for its own.
        definitions = str(toolchain.ROOT / "deploy/crds.yaml")
        self.node.kubectl("delete", "-f", definitions, "--ignore-not-found", "--timeout=60s", seconds=90)
        create_namespace, install, self.test = page.commands(page.INSTALLING)
        self.run(create_namespace)
        self.make_secret()
        for command in page.commands(page.CERTIFICATES):
            self.run(command)
        begun = time.monotonic()
        self.run(install)
        self.installed_in = time.monotonic() - begun
        self._start_hub()
        return self

    def __exit__(self, *_) -> None:
        if self.hub:
            self.hub.terminate()
            self.hub.wait(60)

    def run(self, command: str) -> None:
        """Run a command of a page, as somebody who reads it. Raises `AssertionError` if it fails."""
        programs = os.pathsep.join([str(self.helm.program.parent), self.node.environment["PATH"]])
        ended = subprocess.run(
            command,
            shell=True,
            cwd=self.folder,
            env=self.helm.environment | {"PATH": programs},
            capture_output=True,
            text=True,
            timeout=INSTALL,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"

    def upgrade(self, **config) -> None:
        """Change the release, and wait until the service is ready."""
        values = self.write_values(**config)
        command = ["upgrade", RELEASE, CHART, "-n", NAMESPACE, "-f", values, "--wait", "--timeout", f"{INSTALL:.0f}s"]
        self.helm.run(*command)

    def write_values(self, **config) -> Path:
        """Write the file of values."""
        file = self.folder / "my-values.yaml"
        file.write_text(yaml.safe_dump(self.values(**config)))
        return file

    def make_secret(self) -> None:
        """The Secret with an administrator's token, as `wasmspawner token` writes it."""
        program = toolchain.target_dir() / "debug/wasmspawner"
        command = [program, "token", "--state-dir", self.folder, "--admin"]
        self.admin_token = subprocess.check_output(command, text=True).strip()
        tokens = f"--from-file=tokens.yaml={self.folder}/tokens.yaml"
        self.node.kubectl("create", "secret", "generic", "tokens", "-n", NAMESPACE, tokens)

    def values(self, **config) -> dict:
        """The values of the release."""
        default = {
            "images": [{"name": "lab", "label": "Lab", "reference": self.lab_image}],
            # Many of them fit on the node.
            "sizes": [{"name": "small", "cpu": 1, "cpu_request": 0.02, "memory": "1Gi", "memory_request": "64Mi"}],
        }
        lab = {"env": {"HOME": "/tmp"}, "security": {"no_app_armor": True}, "termination_grace_period_seconds": 5}
        return {
            "image": {"repository": f"{self.node.registry}/wasmspawner", "tag": self.version},
            "replicas": self.replicas,
            "secrets": {"staticTokens": {"existingSecret": "tokens"}},
            "config": {
                "auth": {
                    "modes": ["static", "jupyterhub"],
                    "static": {},
                    "jupyterhub": {
                        "api_url": f"http://{self.node.address}:8081/hub/api",
                        "services": {"wasmspawner": ["admin:jupyterhub"]},
                    },
                    "identities": {"default": {"uid": 1000, "gid": 1000, "groups": [{"name": "users", "id": 100}]}},
                },
                "lab": lab,
                "policies": [{"name": "default", "config": default}],
                **config,
            },
        }

    def service_url(self) -> str:
        """The REST API at the address of the Service."""
        address = self.node.get("service", RELEASE, "-n", NAMESPACE)["spec"]["clusterIP"]
        return f"http://{address}:8090/spawner/v1"

    def lab_url(self, user: str) -> str:
        """Where the service says that the Hub reaches the user's lab."""
        header = f"Authorization: Bearer {self.admin_token}"
        command = ["curl", "--fail", "--silent", "--header", header, f"{self.service_url()}/labs/{user}"]
        output, _ = self.node.popen(command, stdout=subprocess.PIPE, text=True).communicate(timeout=30)
        return json.loads(output)["url"]

    def service_pod(self) -> dict:
        """The pod of the service."""
        found = self.node.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=wasmspawner")
        return found["items"][0]

    def leader(self) -> str:
        """The name of the pod that leads, according to the Lease."""
        (lease,) = self.node.get("leases", "-n", NAMESPACE, "-l", "wasmspawner.io/instance")["items"]
        return (lease["spec"].get("holderIdentity") or "").partition("_")[0]

    def visit(self, *arguments: str) -> dict:
        """Do what a user does, in the node's network. Returns what `visit.py` prints."""
        command = [sys.executable, HERE / "visit.py", *arguments]
        environment = {"HUB_PASSWORD": self.password, "HUB_TEST_TOKEN": self.test_token}
        visitor = self.node.popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        output, problems = visitor.communicate(timeout=240)
        assert visitor.returncode == 0, problems
        return json.loads(output)

    @contextmanager
    def lab_of(self, user: str) -> Iterator[dict]:
        """A lab that its user starts and stops at the Hub. Yields the messages of its start; ends when its namespace is empty."""
        started = self.visit("start", user)
        assert started["ready"] is True, started["events"]
        try:
            yield started
        finally:
            self.visit("stop", user)
            left = ("pods,secrets", "-n", f"nublado-{user}")
            eventually(lambda: not self.node.get(*left)["items"], "the end of what is in the namespace")

    def compute(self, user: str, code: str) -> str:
        """Run code in the user's lab. Returns what it prints."""
        return self.visit("compute", user, code)["printed"]

    def _start_hub(self) -> None:
        files = {"hub.password": self.password, "service-at-hub.token": self.hub_token}
        for name, text in files.items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o600)
        home = self.folder / "hub"
        home.mkdir()
        environment = {
            "BASE_CONFIG": str(toolchain.LOCAL / "jupyterhub_config.py"),
            "HUB_ADDRESS": self.node.address,
            "HUB_PORT": "8000",
            "HUB_INTERNAL_PORT": "8081",
            "HUB_PROXY_PORT": "8001",
            "HUB_PASSWORD_FILE": str(self.folder / "hub.password"),
            "HUB_TEST_TOKEN": self.test_token,
            "SERVICE_TOKEN_FILE": str(self.folder / "service-at-hub.token"),
            "WASMSPAWNER_TOKEN_FILE": str(self.folder / "service-at-hub.token"),
            "WASMSPAWNER_API_URL": self.service_url(),
            "PYTHONPATH": str(toolchain.ROOT / "sdk/python/src"),
            # Both trust the authority from which labs may get certificates.
            "SSL_CERT_FILE": str(self.folder / "ca.pem"),
            "NODE_EXTRA_CA_CERTS": str(self.folder / "ca.pem"),
        }
        path = os.pathsep.join([str(Path(sys.executable).parent), self.node.environment["PATH"]])
        # The Hub asks the cluster for the addresses of names, as a Hub in a pod does.
        names = self.folder / "resolv.conf"
        server = self.node.get("service", "kube-dns", "-n", "kube-system")["spec"]["clusterIP"]
        names.write_text(f"search svc.cluster.local cluster.local\nnameserver {server}\noptions ndots:5\n")
        in_cluster = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', names]
        command = [*in_cluster, sys.executable, "-m", "jupyterhub", "-f", HERE / "jupyterhub_config.py"]
        with open(self.folder / "hub.log", "wb") as log:
            self.hub = self.node.popen(command, cwd=home, env={**environment, "PATH": path}, stdout=log, stderr=log)
        self.visit("wait")
