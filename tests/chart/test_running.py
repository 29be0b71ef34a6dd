"""The service with the configuration, the account and the permissions of a release, on a real control plane."""

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest
import requests
import service
import yaml
from chart import MINIMAL, NAME, merged
from cluster import DEFINITION, DEFINITIONS, Cluster

import compiled_policies

TOKENS = {"ada": ["exec:notebook"], "root": ["admin:notebook"]}


# The address by which the pod of the service would be reached.
ADDRESS = "10.0.0.7"


class Running:
    """The service as a process of this machine, with the account of the release."""

    def __init__(self, cluster: Cluster, home: str, folder: Path) -> None:
        self.cluster, self.home, self.folder = cluster, home, folder
        self.log = folder / "service.log"
        self.address = service.free_address()

    def __enter__(self):
        described = self.cluster.get("configmap", NAME, "-n", self.home)["data"]["wasmspawner.yaml"]
        tokens = self.folder / "tokens.yaml"
        tokens.touch(mode=0o600)
        tokens.write_text(yaml.safe_dump([service.entry(user, scopes) for user, scopes in TOKENS.items()]))
        rendered = yaml.safe_load(described)
        secrets = {rendered["auth"]["static"]["tokens_file"]: str(tokens)}
        config = service.runnable(rendered, self.folder, secrets)
        config["http"] |= {"listen": self.address, "health_listen": service.free_address()}
        config["kubernetes"]["kubeconfig"] = str(self._kubeconfig())
        config["telemetry"] = {"format": "json"}
        file = self.folder / "wasmspawner.yaml"
        file.write_text(yaml.safe_dump(config))
        compiled_policies.lend(self.folder / "state")
        with open(self.log, "w") as log:
            command = [service.program(), "serve", "--config", file]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | self._pod())
        try:
            self.cluster.until(self._is_ready, "the service is ready")
        except BaseException:
            self.process.kill()
            raise
        compiled_policies.keep(self.folder / "state")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(timeout=60) == 0

    def get(self, path: str, user: str) -> requests.Response:
        return self.request("GET", path, user)

    def request(self, method: str, path: str, user: str, **body) -> requests.Response:
        headers = {"Authorization": f"Bearer {service.token(user)}"}
        url = f"http://{self.address}/spawner/v1{path}"
        return requests.request(method, url, headers=headers, allow_redirects=False, timeout=30, **body)

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            return self.get("/labs", "root").status_code == 200
        except requests.RequestException:
            return False

    @staticmethod
    def _pod() -> dict[str, str]:
        """What the Deployment tells the service of its pod."""
        pod = {"POD_NAME": NAME, "POD_UID": str(uuid.uuid4()), "POD_IPS": ADDRESS, "NODE_NAME": "node"}
        return {f"WASMSPAWNER_{name}": value for name, value in pod.items()}

    def _kubeconfig(self) -> Path:
        config = yaml.safe_load(Path(self.cluster.kubeconfig).read_text())
        bearer = self.cluster.kubectl("create", "token", NAME, "-n", self.home).strip()
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": bearer}}]
        path = self.folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return path


POLICY = {
    "name": "default",
    "config": {
        "images": [
            {"name": "minimal", "label": "Minimal", "reference": "quay.io/jupyter/minimal-notebook:python-3.13"}
        ],
        "sizes": [{"name": "small", "label": "Small", "cpu": 1, "memory": "2Gi"}],
    },
}


# The empty namespaces of labs are kept no longer than a moment.
AT_ONCE = {"delete": {"delete_namespaces_after": "1s"}}


def values(namespaces: str, template: str) -> dict:
    config = {
        "auth": {"modes": ["static"], "jupyterhub": None},
        "kubernetes": {"namespaces": namespaces} | AT_ONCE.get(namespaces, {}),
        "names": {"namespace": template},
        "policies": [POLICY],
    }
    single = {"labsNamespace": {"create": True}} if namespaces == "single" else {}
    return merged(MINIMAL, single, {"secrets": {"staticTokens": {"existingSecret": "tokens"}}, "config": config})


@pytest.mark.parametrize("namespaces", ["delete", "single"])
def test_labs_start_outlive_an_upgrade_and_stop_with_what_the_chart_installs(
    helm, chart, cluster, tmp_path, namespaces
):
    cluster.remove_definitions()
    home = cluster.namespace(f"running-{namespaces}")
    template, labs = f"{home}-labs", f"{home}-labs"
    if namespaces == "delete":
        template, labs = f"{labs}-{{user_server}}", f"{labs}-ada"
    cluster.namespaces.append(labs)
    file = chart.file(values(namespaces, template))
    helm.run("install", NAME, chart.archive, "-n", home, "-f", file)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{DEFINITION}")
    with Running(cluster, home, tmp_path) as running:
        spawned = running.request(
            "POST", "/labs/ada/spawn", "ada", json={"options": {"image": "minimal", "size": "small"}}
        )
        assert spawned.status_code == 303, spawned.text
        cluster.until(lambda: cluster.exists("pod", "nb-ada", "-n", labs), f"a pod; {running.log.read_text()[-3000:]}")
        cluster.until(lambda: addresses(cluster, home) == [ADDRESS], "requests are led to the service")
    assert addresses(cluster, home) == []
    pod = cluster.get("pod", "nb-ada", "-n", labs)["metadata"]["uid"]
    helm.run("upgrade", NAME, chart.archive, "-n", home, "-f", file, "--set", "config.limits.spawn=15m")
    with Running(cluster, home, tmp_path) as running:
        assert running.get("/labs?status=all", "root").json() == ["ada"]
        assert cluster.get("pod", "nb-ada", "-n", labs)["metadata"]["uid"] == pod
        assert running.request("DELETE", "/labs/ada", "ada").status_code == 202
        cluster.until(lambda: not cluster.names("spawns", "-n", home), "the record is gone")
        assert not cluster.exists("pod", "nb-ada", "-n", labs)
    helm.run("uninstall", NAME, "-n", home)


def addresses(cluster, home):
    endpoints = cluster.get("endpointslice", NAME, "-n", home).get("endpoints") or []
    return [address for endpoint in endpoints for address in endpoint["addresses"]]


def test_a_lab_gets_an_environment_of_a_pool_with_what_the_chart_installs(helm, chart, cluster, tmp_path):
    cluster.remove_definitions()
    home = cluster.namespace("running-environments")
    prefix = f"{cluster.prefix}-env-"
    chosen = {
        "config": {"environments": {"default_class": "pooled"}},
        "environments": {"namespacePrefixes": [prefix]},
    }
    file = chart.file(merged(values("delete", f"{home}-labs-{{user_server}}"), chosen))
    helm.run("install", NAME, chart.archive, "-n", home, "-f", file)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *(f"crd/{name}" for name in DEFINITIONS))
    spec = {"provisioner": "wasmspawner.io/namespace", "reclaimPolicy": "Delete", "poolSize": 1}
    spec["parameters"] = {"namespacePrefix": prefix}
    pooled = {"kind": "DeploymentTargetClass", "metadata": {"name": "pooled"}, "spec": spec}
    cluster.apply({"apiVersion": "wasmspawner.io/v1alpha1", **pooled})

    def phases():
        return {
            each["metadata"]["name"]: each.get("status", {}).get("phase")
            for each in cluster.get("dt", "-n", home)["items"]
        }

    with Running(cluster, home, tmp_path) as running:
        cluster.until(lambda: phases() == {"pooled-1": "Available"}, f"a pool; {running.log.read_text()[-3000:]}")
        labs = cluster.get("dt", "pooled-1", "-n", home)["spec"]["kubernetesCredentials"]["defaultNamespace"]
        assert labs.startswith(f"{prefix}pooled-1-")
        options = {"image": "minimal", "size": "small"}
        spawned = running.request("POST", "/labs/ada/spawn", "ada", json={"options": options})
        assert spawned.status_code == 303, spawned.text
        cluster.until(lambda: cluster.exists("pod", "nb-ada", "-n", labs), f"a pod; {running.log.read_text()[-3000:]}")
        cluster.until(lambda: phases() == {"pooled-1": "Bound", "pooled-2": "Available"}, "the pool is full again")
        cluster.kubectl("patch", "dtcls", "pooled", "--type=merge", "-p", '{"spec":{"poolSize":0}}')
        assert running.request("DELETE", "/labs/ada", "ada").status_code == 202
        cluster.until(lambda: not cluster.names("spawns", "-n", home) and not phases(), "record and targets are gone")
        assert not cluster.exists("namespace", labs)
        assert cluster.names("secrets", "-n", home, "-l", "wasmspawner.io/target") == []
    helm.run("uninstall", NAME, "-n", home)
