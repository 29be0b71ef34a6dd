"""The cluster of TEST_KUBECONFIG, with kubectl."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import yaml

FAKES = Path(__file__).parent / "fakes"
PATIENCE = 60.0  # seconds
DEFINITION = "spawns.wasmspawner.io"
# The definitions of all kinds of the service.
DEFINITIONS = (
    DEFINITION,
    "deploymenttargetclaims.wasmspawner.io",
    "deploymenttargets.wasmspawner.io",
    "environments.wasmspawner.io",
    "deploymenttargetclasses.wasmspawner.io",
    "blueprints.wasmspawner.io",
)


class Refused(Exception):
    """kubectl ended with an error. The message is what it wrote."""


class Cluster:
    """A cluster in which the tests create namespaces whose names begin with `prefix`."""

    def __init__(self, kubeconfig: str, prefix: str) -> None:
        self.kubeconfig = kubeconfig
        self.prefix = prefix
        self.namespaces: list[str] = []

    def kubectl(self, *arguments: str | Path, given: str = "") -> str:
        """Run kubectl and return its output. Raises `Refused` if it fails."""
        command = ["kubectl", "--kubeconfig", self.kubeconfig, *(str(part) for part in arguments)]
        ended = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
        if ended.returncode != 0:
            raise Refused(ended.stderr)
        return ended.stdout

    def get(self, *arguments: str) -> dict:
        """An object, or a list of objects."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def exists(self, *arguments: str) -> bool:
        """True if there is an object."""
        return bool(self.kubectl("get", *arguments, "--ignore-not-found", "-o", "name").strip())

    def names(self, kind: str, *arguments: str) -> list[str]:
        """The names of objects."""
        return [each["metadata"]["name"] for each in self.get(kind, *arguments)["items"]]

    def apply(self, *objects: dict) -> None:
        """Create the objects."""
        self.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(objects))

    def dry_run(self, objects: list[dict]) -> None:
        """Send the objects to the API server, which checks them and keeps nothing. Raises `Refused`."""
        text = yaml.safe_dump_all(objects)
        self.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", given=text)

    def namespace(self, suffix: str, **labels: str) -> str:
        """Create a namespace, and return its name."""
        name = f"{self.prefix}-{suffix}"
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        self.namespaces.append(name)
        return name

    def install_fakes(self) -> None:
        """Install definitions of kinds of other projects, and wait until they are served."""
        self.kubectl("apply", "-f", FAKES)
        names = [name for name in self.names("crd") if self._is_fake(name)]
        assert len(names) == 4, names
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", *(f"crd/{name}" for name in names))

    def remove_definitions(self) -> None:
        """Remove the definitions of the service's kinds with all objects, and the finalizers that only the service removes."""
        installed = self.names("crd")
        for definition in DEFINITIONS:
            if definition in installed:
                self._remove_definition(definition)

    def _remove_definition(self, definition: str) -> None:
        for found in self.get(definition, "-A")["items"]:
            name, namespace = found["metadata"]["name"], found["metadata"].get("namespace", "")
            without = '{"metadata":{"finalizers":null}}'
            self.kubectl("patch", definition, name, f"--namespace={namespace}", "--type=merge", "-p", without)
        self.kubectl("delete", "crd", definition, "--timeout=60s")

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until something is so."""
        give_up = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < give_up, f"not within {PATIENCE:.0f} s: {what}"
            time.sleep(0.2)

    def leave(self) -> None:
        """Remove what the tests have created."""
        for name in self.namespaces:
            self.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")
        self.kubectl("delete", "-f", FAKES, "--ignore-not-found")
        self.remove_definitions()

    def _is_fake(self, name: str) -> bool:
        annotations = self.get("crd", name)["metadata"].get("annotations", {})
        return "wasmspawner.example/fake" in annotations
