"""A Dask pool on a real kubelet: scheduler and workers compute in containers of their own, for the lab that asks."""

import base64
import io
import subprocess
import tarfile

import pytest
from lab_site import API_PORT, eventually

from toolchain import ROOT

NAMESPACE, LAB = "nublado-ada", "nb-ada"
# What every script below begins with. A worker's death ends the task that it computed.
BEGIN = """
import os, sys
sys.path.insert(0, "/tmp/sdk")
from wasmspawner.dask import WasmSpawnerCluster, stop_pool
"""
START = """
settings = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
pool = WasmSpawnerCluster("p", n_workers=2, shutdown_on_close=False, env=settings, quiet=True)
client = pool.get_client()
client.wait_for_workers(2, timeout=120)
print(client.submit(sum, [20, 22]).result(60))
print(set(client.run(os.getuid).values()))
print(any(client.run(os.path.exists, "/var/run/secrets/kubernetes.io/serviceaccount").values()))
"""
RUN_OUT_OF_MEMORY = """
import distributed
pool = WasmSpawnerCluster.from_name("p", quiet=True)
client = pool.get_client()
before = set(client.run(lambda: (os.environ["POD_IP"], os.getpid())).values())
try:
    client.submit(lambda: len(b"x" * (4 << 30))).result(120)
except distributed.KilledWorker:
    print("KilledWorker")
client.wait_for_workers(2, timeout=120)
print(client.submit(sum, [1, 2]).result(60))
after = set(client.run(lambda: (os.environ["POD_IP"], os.getpid())).values())
print(len(before & after), len(after))
"""
SCALE = """
pool = WasmSpawnerCluster.from_name("p", quiet=True)
client = pool.get_client()
pool.scale(3)
client.wait_for_workers(3, timeout=120)
workers = list(client.scheduler_info(n_workers=-1)["workers"])
kept = [client.submit(os.urandom, 9, workers=[worker], pure=False) for worker in workers]
print(len(workers), len(set(client.gather(kept))))
client.publish_dataset(kept=kept, first=client.gather(kept))
pool.scale(1)
"""
READ = """
pool = WasmSpawnerCluster.from_name("p", quiet=True)
client = pool.get_client()
print(client.gather(client.get_dataset("kept")) == client.get_dataset("first"))
"""


@pytest.fixture
def with_pools(node, reconfigure):
    """Labs reach the service."""
    reconfigure(lambda config: config["http"].update(labs_url=f"http://{node.address}:{API_PORT}"))


def test_a_pool_computes_scales_heals_and_ends(node, site, with_pools, running):
    running("ada", "jupyterlab")
    install_package(node)

    assert in_lab(node, START) == "42\n{1000}\nFalse\n"
    of_pool = pods(node)
    assert len(of_pool) == 3
    lab = node.get("pod", LAB, "-n", NAMESPACE)
    addresses = {pod["status"]["podIP"] for pod in [lab, *of_pool.values()]}
    assert len(addresses) == 4

    # Nothing enforces network policies here, so this reads them as a network plugin would.
    for port in (8786, 8787):
        [scheduler] = [pod for name, pod in of_pool.items() if ports(pod) == [8786, 8787]]
        assert allowed(node, lab, scheduler, port)
        assert not allowed(node, {"metadata": {"labels": {"wasmspawner.io/user": "bea"}}}, scheduler, port)

    assert in_lab(node, RUN_OUT_OF_MEMORY) == "KilledWorker\n3\n1 2\n"
    assert in_lab(node, SCALE) == "3 3\n"
    eventually(lambda: len(pods(node)) == 2, "the pods of the retired workers are gone")
    assert in_lab(node, READ) == "True\n", "what they had was moved first"

    in_lab(node, "stop_pool('p')")
    eventually(lambda: site.ask_pool("GET", "ada", "p").status_code == 404, "the pool is gone")
    eventually(lambda: not pods(node), "its pods are gone")
    for kind in ("secrets", "configmaps", "networkpolicies"):
        names = [each["metadata"]["name"] for each in node.get(kind, "-n", NAMESPACE)["items"]]
        assert not [name for name in names if "-dask-" in name], kind
    assert site.lab("ada")["status"] == "running"


def install_package(node):
    """Copy the package `wasmspawner` into the lab, whose image has what the package needs."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.add(ROOT / "sdk/python/src/wasmspawner", "wasmspawner")
    text = base64.b64encode(archive.getvalue()).decode()
    unpack = "mkdir /tmp/sdk && base64 -d | tar -xz -C /tmp/sdk"
    node.kubectl("exec", "-i", LAB, "-n", NAMESPACE, "--", "sh", "-c", unpack, stdin=text)


def in_lab(node, script):
    """Run a script in the lab. Returns what it prints."""
    command = ["python", "-c", BEGIN + script]
    try:
        return node.kubectl("exec", LAB, "-n", NAMESPACE, "--", *command, seconds=300)
    except subprocess.CalledProcessError as error:
        raise AssertionError(f"{error.stdout}\n{error.stderr[-3000:]}") from None


def pods(node):
    """The pods of the pool, by name."""
    found = node.get("pods", "-n", NAMESPACE)["items"]
    return {pod["metadata"]["name"]: pod for pod in found if "-dask-" in pod["metadata"]["name"]}


def ports(pod):
    return sorted(port["containerPort"] for port in pod["spec"]["containers"][0].get("ports", []))


def allowed(node, source, target, port):
    """Whether a network policy of the namespace lets one of its pods reach this port of another."""

    def selects(selector, pod):
        return selector.get("matchLabels", {}).items() <= pod["metadata"]["labels"].items()

    for policy in node.get("networkpolicies", "-n", NAMESPACE)["items"]:
        if not selects(policy["spec"]["podSelector"], target):
            continue
        for rule in policy["spec"].get("ingress", []):
            own = [peer["podSelector"] for peer in rule["from"] if peer.keys() == {"podSelector"}]
            if any(selects(peer, source) for peer in own) and port in [each["port"] for each in rule["ports"]]:
                return True
    return False
