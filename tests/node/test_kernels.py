"""Kernels in pods of their own, on a real kubelet: a lab computes in another container."""

import json
import textwrap

import pytest
from lab_site import API_PORT, eventually

KEY = "a0436f6c-1916-498b-8eb9-e81ab9368e84"
KERNEL = {
    "kernel_name": "python3",
    "command": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
    "connection": {"key": KEY, "signature_scheme": "hmac-sha256"},
}
# Run by the lab, which has jupyter_client as every JupyterLab does.
CLIENT = """
import json, sys
from jupyter_client import BlockingKernelClient
connection, code, seconds = json.loads(sys.argv[1]), sys.argv[2], float(sys.argv[3])
client = BlockingKernelClient()
client.load_connection_info(connection | {"key": %r, "signature_scheme": "hmac-sha256"})
client.start_channels()
client.wait_for_ready(timeout=60)
def show(message):
    content = message["content"]
    print(content.get("text") or content.get("ename") or "", end="", flush=True)
client.execute_interactive(code, output_hook=show, timeout=seconds)
"""


@pytest.fixture
def with_kernels(node, reconfigure):
    """Labs reach the service."""
    reconfigure(lambda config: config["http"].update(labs_url=f"http://{node.address}:{API_PORT}"))


def test_a_lab_computes_in_a_kernel_of_its_own(node, site, with_kernels, running):
    running("ada", "jupyterlab")

    def kernel():
        answer = site.ask_kernel("GET", "ada", "k1")
        return answer.json() if answer.ok else None

    def process(number, state):
        found = kernel()["process"]
        return found if found and (found["number"], found["state"]) == (number, state) else None

    def run(code, seconds=60):
        script = textwrap.dedent(CLIENT % KEY)
        arguments = [script, json.dumps(kernel()["connection"]), code, str(seconds)]
        command = ["kubectl", "exec", "nb-ada", "-n", "nublado-ada", "--", "python", "-c", *arguments]
        return node.kubectl(*command[1:], seconds=90)

    answer = site.ask_kernel("POST", "ada", "k1", json=KERNEL)
    assert answer.status_code == 201, answer.text
    eventually(lambda: kernel()["status"] in ("running", "failed"), "the kernel's pod runs")
    assert kernel()["status"] == "running", kernel()
    eventually(lambda: process(1, "running"), "its process runs")
    address = kernel()["connection"]["ip"]
    assert run("import os; print(os.environ['POD_IP'], os.getuid())") == f"{address} 1000\n"
    pods = {pod["metadata"]["name"]: pod for pod in node.get("pods", "-n", "nublado-ada")["items"]}
    [name] = [name for name in pods if "-kernel-" in name]
    assert pods[name]["status"]["podIP"] == address != pods["nb-ada"]["status"]["podIP"]

    # A signal reaches the process, and a killed one is started anew at the same address.
    assert run("x = 1") == ""
    assert site.ask_kernel("POST", "ada", "k1", "/signal", json={"signum": 2}).status_code == 204
    assert run("print(x)") == "1\n", "an interrupt ends no kernel"
    assert site.ask_kernel("POST", "ada", "k1", "/signal", json={"signum": 9}).status_code == 204
    ended = eventually(lambda: process(1, "ended"), "the process has ended")
    assert ended["exit_code"] == -9
    assert site.ask_kernel("POST", "ada", "k1", "/restart").status_code == 202
    eventually(lambda: process(2, "running"), "the new process runs")
    assert kernel()["connection"]["ip"] == address
    assert run("print(x)") == "NameError"

    # The service may end meanwhile.
    site.end()
    site.start(site.config)
    eventually(lambda: process(2, "running"), "the launcher has reported again")
    assert run("print('still there')") == "still there\n"

    assert site.ask_kernel("DELETE", "ada", "k1").status_code == 202
    eventually(lambda: not node.get("pod", name, "-n", "nublado-ada"), "the kernel's pod is gone")
    assert site.lab("ada")["status"] == "running"


def test_a_kernel_that_needs_too_much_memory_ends_alone(node, site, with_kernels, running):
    running("bea", "jupyterlab")
    eater = KERNEL | {"command": ["python", "-c", "x = [bytearray(1 << 20) for _ in range(4096)]"]}
    assert site.ask_kernel("POST", "bea", "k1", json=eater).status_code == 201

    def ended():
        kernel = site.ask_kernel("GET", "bea", "k1").json()
        process = kernel["process"] or {}
        return kernel if kernel["status"] == "failed" or process.get("state") == "ended" else None

    kernel = eventually(ended, "the kernel has ended")
    told = kernel["status"] == "failed" and kernel["message"].startswith("Your kernel used more memory")
    assert told or kernel["process"]["exit_code"] == -9, kernel
    assert site.lab("bea")["status"] == "running"
