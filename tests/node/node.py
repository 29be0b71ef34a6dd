"""A Kubernetes cluster with one real node, in a network namespace of its own."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import images
import network
from kubelet import NODE, Kubelet
from node_programs import Programs
from registry import Registry
from runtime import Runtime
from slot import Slot

from control_plane import ControlPlane
from processes import Processes

READY = 120.0  # seconds; an idle machine needs twenty
DNS_SERVICE = """
{{"apiVersion": "v1", "kind": "List", "items": [
  {{"apiVersion": "v1", "kind": "Service", "metadata": {{"name": "kube-dns", "namespace": "kube-system"}},
    "spec": {{"clusterIP": "{dns}", "ports": [
      {{"name": "dns", "port": 53, "protocol": "UDP"}}, {{"name": "dns-tcp", "port": 53, "protocol": "TCP"}}]}}}},
  {{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
    "metadata": {{"name": "kube-dns", "namespace": "kube-system", "labels": {{"kubernetes.io/service-name": "kube-dns"}}}},
    "ports": [
      {{"name": "dns", "port": 53, "protocol": "UDP"}}, {{"name": "dns-tcp", "port": 53, "protocol": "TCP"}}],
    "endpoints": [{{"addresses": ["{node}"], "conditions": {{"ready": true}}}}]}}]}}
"""
COREFILE = """\
.:53 {{
    errors
    ready 127.0.0.1:8181
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig} control-plane
    }}
}}
"""


class Node:
    """A cluster for a `with` statement: pods run inside it, and nothing is left after it.

    Its network namespace reaches this machine and nothing else. From this machine, the node's address is reachable.
    """

    def __init__(self, programs: Programs) -> None:
        self.programs = programs

    def __enter__(self) -> "Node":
        self.slot = Slot.take()
        try:
            self._start()
        except BaseException:
            self.slot.give_back()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.slot.give_back()

    @property
    def name(self) -> str:
        """The name of the network namespace, and of the control group."""
        return self.slot.name

    @property
    def address(self) -> str:
        """The node's address, inside and from this machine."""
        return self.slot.address

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with all permissions, for inside and for this machine."""
        return self.control_plane.kubeconfig

    @property
    def registry(self) -> str:
        """The registry as names of images begin with it: `{registry}/name:tag`. Reachable from the node and its pods."""
        return Registry.address

    @property
    def protected_registry(self) -> str:
        """The same images, for those who know the password (`registry.USER`, `registry.PASSWORD`)."""
        return Registry.protected

    def push(self, source: Path | str, name: str) -> str:
        """Push an OCI archive or layout (`folder` or `folder:tag`) into the registry as `name:tag`. Returns the image's
        whole name."""
        return self._registry.push(source, name)

    def push_image(self, image: images.Image) -> str:
        """Push one of the harness's own images."""
        return self.push(image.source, f"{image.name}:{image.tag}")

    def popen(self, command: list[str], **options) -> subprocess.Popen:
        """Start a command inside, with `environment`. It ends with the cluster at the latest."""
        environment = {**os.environ, **self.environment, **(options.pop("env", None) or {})}
        inside = [*network.enter(self.slot), *map(str, command)]
        return subprocess.Popen(inside, env=environment, preexec_fn=self.slot.group.enter, **options)

    @property
    def environment(self) -> dict[str, str]:
        """What commands find in their environment."""
        return {
            "PATH": self.programs.path,
            "KUBECONFIG": str(self.kubeconfig),
            "TEST_NODE_KUBECONFIG": str(self.kubeconfig),
            "TEST_NODE_ADDRESS": self.address,
            "TEST_NODE_REGISTRY": self.registry,
            "TEST_NODE_NAMESPACE": self.name,
        }

    def kubectl(self, *arguments: str, stdin: str = "", seconds: float = 60) -> str:
        """Run kubectl. Returns what it prints; raises `CalledProcessError` if it fails."""
        command = [str(self.programs.kubernetes / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, timeout=seconds).stdout

    def get(self, *arguments: str) -> dict:
        """What `kubectl get` finds; empty if there is nothing of that name."""
        return json.loads(self.kubectl("get", "-o", "json", "--ignore-not-found", *arguments) or "{}")

    def apply(self, *objects: dict) -> None:
        """Create or change objects."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def wait(self, what: str, ready: Callable[[], object], seconds: float = READY) -> None:
        """Wait until `ready()` is true. Raises `NotReady`, also when one of the cluster's programs has ended."""
        self.processes.wait(what, ready, seconds)

    def _start(self) -> None:
        begun = time.monotonic()
        slot, programs = self.slot, self.programs
        slot.group.make()
        network.make(slot)
        enter = network.enter(slot)
        path = {**os.environ, "PATH": programs.path}
        self.processes = Processes(slot.home, lambda command: [*enter, *command], slot.group.enter, path)
        self._registry = Registry(slot, self.processes)
        self._registry.launch()
        self.runtime = runtime = Runtime(slot, programs, self.processes)
        kubelet = Kubelet(slot, programs, self.processes)
        kubelet.make_certificate()
        self.processes.wait("registry", self._registry.answers)
        runtime.launch(self.push_image(images.pause()))
        self.shell_image = self.push_image(images.shell())
        self.control_plane = ControlPlane(
            programs.control_plane,
            address=slot.address,
            etcd_address="127.0.0.1",
            server={
                "service_cluster_ip_range": network.SERVICES,
                "endpoint_reconciler_type": "lease",
                "kubelet_preferred_address_types": "InternalIP",
                "kubelet_client_certificate": kubelet.client_certificate,
                "kubelet_client_key": kubelet.client_key,
            },
            manager={"controllers": "*", "root_ca_file": slot.home / "certificates/apiserver.crt"},
        )
        self.control_plane.start(slot.home, self.processes)
        runtime.wait()
        kubelet.launch(self.kubeconfig, runtime.socket)
        self._launch_scheduler_proxy_and_dns()
        self.wait("kubelet", self._is_ready)
        self._run_a_pod()
        self.started_in = time.monotonic() - begun

    def _launch_scheduler_proxy_and_dns(self) -> None:
        folder = self.programs.kubernetes
        self.processes.launch(
            folder / "kube-scheduler",
            kubeconfig=self.kubeconfig,
            authentication_kubeconfig=self.kubeconfig,
            authorization_kubeconfig=self.kubeconfig,
            leader_elect="false",
            bind_address="127.0.0.1",
        )
        self.processes.launch(
            folder / "kube-proxy",
            kubeconfig=self.kubeconfig,
            proxy_mode="nftables",
            hostname_override=NODE,
            cluster_cidr=network.PODS,
            healthz_bind_address="127.0.0.1",
            metrics_bind_address="127.0.0.1",
            # Zero leaves this machine's own limits alone.
            conntrack_max_per_core=0,
            conntrack_tcp_timeout_established="0s",
            conntrack_tcp_timeout_close_wait="0s",
        )
        corefile = self.slot.home / "Corefile"
        corefile.write_text(COREFILE.format(kubeconfig=self.kubeconfig))
        self.processes.launch(self.programs.coredns / "coredns", "-conf", corefile)
        self.kubectl("apply", "-f", "-", stdin=DNS_SERVICE.format(dns=network.DNS, node=self.address))

    def _is_ready(self) -> bool:
        conditions = self.get("node", NODE).get("status", {}).get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def _run_a_pod(self) -> None:
        container = {"name": "first", "image": self.shell_image, "command": ["true"]}
        pod = {"restartPolicy": "Never", "containers": [container]}
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "first-pod"}, "spec": pod})
        self.wait("kubelet", lambda: self.get("pod", "first-pod")["status"].get("phase") == "Succeeded")
        self.kubectl("delete", "pod", "first-pod")
