"""A site on the node: the service with the permissions of `deploy/permissions`, and profiles of labs."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import images
import registry
from lab_service import LabService

import toolchain
from toolchain import ROOT

API_PORT, HEALTH_PORT = 8090, 8091
NAMESPACE = "wasmspawner"
SHARED_NAMESPACE = "labs"  # for sites whose labs are in a namespace that stays
PULL_SECRET = "registry-password"
WRONG_PASSWORD = "wrong-password"
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


class LabSite(LabService):
    """A site whose profiles are what can happen to a lab. For a `with` statement."""

    def __enter__(self) -> "LabSite":
        lab = self.node.push_image(images.lab())
        self._prepare_cluster()
        self.start(self._config(lab))
        return self

    def __exit__(self, *_) -> None:
        self.end()

    @contextmanager
    def reconfigured(self, change: Callable[[dict], None]) -> Iterator["LabSite"]:
        """The same site with another configuration, until the end of the `with` statement. No lab may be running at its
        beginning or end."""
        usual, other = self.config, json.loads(json.dumps(self.config))
        change(other)
        self.end()
        self.start(other)
        try:
            yield self
        finally:
            self.end()
            self.start(usual)

    def wait_until_gone(self, user: str) -> None:
        """Wait until nothing is left of a lab but what the site keeps."""
        # The service deletes the lab's record last.
        record = ["spawns.wasmspawner.io", f"lab-{user}", "-n", NAMESPACE]
        eventually(lambda: not self.node.get(*record), f"nothing is left of the lab of {user}")

    def stop_to_end(self, user: str) -> None:
        """Stop a lab, and wait until it is gone."""
        self.stop(user)
        self.wait_until_gone(user)

    def namespace(self, user: str) -> str:
        """The namespace of the user's lab."""
        return self.config.get("names", {}).get("namespace", f"nublado-{user}")

    def pod(self, user: str) -> dict:
        """The lab's pod; empty if there is none."""
        return self.node.get("pod", f"nb-{user}", "-n", self.namespace(user))

    def run_inside(self, user: str, script: str) -> str:
        """Run a script in the user's lab, as its user. Returns what it prints."""
        return self.node.kubectl("exec", f"nb-{user}", "-n", self.namespace(user), "--", "sh", "-c", script)

    def _prepare_cluster(self) -> None:
        node = self.node
        credentials = base64.b64encode(f"{registry.USER}:{WRONG_PASSWORD}".encode()).decode()
        pull = {"auths": {node.protected_registry: {"auth": credentials}}}
        node.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHARED_NAMESPACE}},
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
        for file in ("crds.yaml", "permissions/cluster-wide.yaml"):
            node.kubectl("apply", "-f", str(ROOT / "deploy" / file))
        admission = (ROOT / "deploy/admission-policy.yaml").read_text()
        for variable, denied, expression in (
            ("existing", "''", f"'{SHARED_NAMESPACE}'"),
            ("workloads", "''", "'shop'"),
            ("runAsRootInit", "false", "true"),  # as the policy with this grant in test_volumes.py
        ):
            before, after = (f"""{{name: {variable}, expression: "{value}"}}""" for value in (denied, expression))
            assert before in admission
            admission = admission.replace(before, after)
        node.kubectl("apply", "-f", "-", stdin=admission)
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
            "slow": {"image": shell, "cmd": ["sh", "-c", "exec sleep 1000"]},
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
