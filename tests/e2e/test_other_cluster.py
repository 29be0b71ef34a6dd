"""A real Hub whose labs run in another cluster, which it reaches through a gateway and in no other way."""

import os
import secrets
import sys

import pytest
import requests
from jupyter_lab import JupyterLab
from lone_service import LoneService
from world import ROOT, Visitor, World, adapt, eventually, free_port

import stack

GROUP = "/apis/wasmspawner.io/v1alpha1"


class Gateway:
    """What leads to the labs of the other cluster. There, an Ingress or an HTTPRoute would tell it where they are."""

    def __init__(self, folder):
        self.port, self._api_port, self._token = free_port(), free_port(), secrets.token_hex(16)
        options = {"--ip": "127.0.0.1", "--port": self.port, "--api-ip": "127.0.0.1", "--api-port": self._api_port}
        command = [
            sys.executable,
            ROOT / "deploy/local/proxy.py",
            *(str(word) for pair in options.items() for word in pair),
        ]
        env = dict(os.environ, CONFIGPROXY_AUTH_TOKEN=self._token)
        self.process = stack.Process("gateway", folder / "gateway.log", command, folder, env)
        self.process.wait_until(lambda: self._ask("GET", "").ok, 30)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def route(self, prefix, target):
        """Lead what begins with the prefix to the target."""
        self._ask("POST", prefix, json={"target": target}).raise_for_status()

    def _ask(self, method, prefix, **options):
        headers = {"Authorization": f"token {self._token}"}
        url = f"http://127.0.0.1:{self._api_port}/api/routes{prefix}"
        try:
            return requests.request(method, url, headers=headers, timeout=5, **options)
        except requests.RequestException:
            answer = requests.Response()
            answer.status_code = 503
            return answer


class TwoClusters:
    """A Hub and a service with a cluster of its own, another cluster, and the gateway to that."""

    def __init__(self, folder):
        self.far = LoneService(folder, lambda config: None)
        self.far.settings.runtime = "process"
        self.far.settings.keep_labs = True
        self.gateway = Gateway(folder)
        near = folder / "near"
        near.mkdir(mode=0o700)
        self.world = World.at(near)
        self.world.settings.adapt = self._adapt

    def _adapt(self, config):
        adapt(config, self.world.settings.state)
        del config["kubernetes"]
        config["policies"][0]["config"].pop("volumes")
        config["policies"][0]["config"].pop("mounts")
        config["lab"]["env"]["HOME"] = config["lab"]["working_dir"] = "/tmp"
        config["environments"] = {"default_class": "far", "clusters": {"far": {"lab_url": self.gateway.url}}}

    def lead_there(self):
        """Give the service the credentials of the other cluster, and a class of labs there."""
        kubeconfig = (self.far.settings.state / "kubeconfig").read_text()
        secret = {"metadata": {"name": "far"}, "stringData": {"kubeconfig": kubeconfig}}
        self.world.ask_cluster("POST", "/api/v1/namespaces/wasmspawner/secrets", json=secret)
        spec = {
            "provisioner": "wasmspawner.io/namespace",
            "reclaimPolicy": "Delete",
            "parameters": {"credentialsSecret": "far", "credentials": "false"},
        }
        class_ = {
            "apiVersion": "wasmspawner.io/v1alpha1",
            "kind": "DeploymentTargetClass",
            "metadata": {"name": "far"},
            "spec": spec,
        }
        self.world.ask_cluster("POST", f"{GROUP}/deploymenttargetclasses", json=class_)

    def pods_there(self):
        return self.far.ask_cluster("GET", "/api/v1/pods").json()["items"]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    clusters = TwoClusters(tmp_path_factory.mktemp("clusters"))
    try:
        with clusters.far.running(), clusters.world.running():
            clusters.lead_there()
            yield clusters
    finally:
        clusters.gateway.process.stop(10)


def test_a_user_works_in_a_lab_of_another_cluster(clusters):
    world = clusters.world
    visitor = Visitor(world, "ada")
    visitor.submit()
    address = eventually(
        lambda: next((pod["status"].get("podIP") for pod in clusters.pods_there()), None), what="a pod there"
    )
    clusters.gateway.route("/user/ada", f"http://{address}:8888")
    assert visitor.progress()[-1][1].get("ready") is True
    assert world.lab("ada")["url"] == clusters.gateway.url
    assert world.lab_status("ada")["kernels"] == 0
    assert world.ask_cluster("GET", "/api/v1/pods").json()["items"] == []

    # Cells compute there: in a kernel of the lab, and in one with a pod of its own.
    jupyter = JupyterLab(world, "ada")
    local = jupyter.start_kernel("python3")
    assert jupyter.run(local, "print(6 * 7)") == "42\n"
    own = jupyter.start_kernel("own-pod")
    assert jupyter.run(own, "print(6 * 7)") == "42\n"
    assert len(clusters.pods_there()) == 2

    # The Hub goes on with the lab after a restart of the service, and stops it with its kernel.
    world.service.child.kill()
    world.service.child.wait()
    world.start_service()
    assert jupyter.run(own, "print(6 * 7)") == "42\n"
    world.hub_api("DELETE", "/users/ada/server")
    eventually(lambda: not world.servers("ada"), what="the server is gone")
    eventually(lambda: not clusters.pods_there(), what="nothing is left there")
