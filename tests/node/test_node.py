"""What the tests of labs rely on: the node itself."""

import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from slot import HOME, Slot

HERE = Path(__file__).parent


def pod(name, image, *command, **spec):
    container = {"name": "main", "image": image, "command": list(command)}
    container |= {key: spec.pop(key) for key in ("resources", "ports") if key in spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec},
    }


def state(node, name):
    """The state of the pod's only container."""
    statuses = node.get("pod", name)["status"].get("containerStatuses") or [{"state": {}}]
    return statuses[0]["state"]


def messages(node, name):
    """The messages of the pod's events."""
    found = node.get("events", f"--field-selector=involvedObject.name={name}")
    return [event["message"] for event in found["items"]]


def ended(node, name):
    """Wait until the pod's container has ended. Returns how."""
    node.wait("kubelet", lambda: "terminated" in state(node, name))
    return state(node, name)["terminated"]


def fetch_inside(node, url):
    """What the URL answers to a program in the node's network."""
    program = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=5).read().decode(), end='')"
    with node.popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, text=True) as reader:
        return reader.stdout.read()


def test_a_pod_runs_and_has_logs_and_exec(node):
    node.apply(pod("plain", node.shell_image, "sh", "-c", "echo I run as $(id -u); exec sleep 3600"))
    node.kubectl("wait", "--for=condition=Ready", "pod/plain")
    assert node.kubectl("logs", "plain") == "I run as 0\n"
    assert node.kubectl("exec", "plain", "--", "cat", "/proc/1/comm") == "sleep\n"
    node.kubectl("delete", "pod", "plain")


def test_a_container_that_uses_too_much_memory_is_killed(node):
    limits = {"limits": {"memory": "32Mi"}}
    node.apply(pod("greedy", node.shell_image, "dd", "if=/dev/zero", "of=/dev/null", "bs=400M", resources=limits))
    ending = ended(node, "greedy")
    assert (ending["reason"], ending["exitCode"]) == ("OOMKilled", 137)


def test_a_missing_image_is_reported(node):
    node.apply(pod("missing", f"{node.registry}/missing:1", "true"))
    node.wait("kubelet", lambda: state(node, "missing").get("waiting", {}).get("reason") == "ImagePullBackOff")
    assert any("missing:1: not found" in message for message in messages(node, "missing"))
    node.kubectl("delete", "pod", "missing")


def test_the_protected_registry_wants_its_password(node):
    image = node.shell_image.replace(node.registry, node.protected_registry)
    node.apply(pod("stranger", image, "true"))
    node.wait("kubelet", lambda: "waiting" in state(node, "stranger"))
    node.wait("kubelet", lambda: any("authorization failed" in message for message in messages(node, "stranger")))
    node.kubectl("delete", "pod", "stranger")
    node.kubectl(
        "create", "secret", "docker-registry", "right", f"--docker-server={node.protected_registry}",
        "--docker-username=puller", "--docker-password=right-password",
    )  # fmt: skip
    node.apply(pod("friend", image, "true", imagePullSecrets=[{"name": "right"}]))
    assert ended(node, "friend")["exitCode"] == 0


def test_a_service_answers_under_its_name(node):
    serve = "mkdir /tmp/www; echo it is the web server > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www"
    node.apply(
        pod("web", node.shell_image, "sh", "-c", serve),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    )
    node.kubectl("wait", "--for=condition=Ready", "pod/web")
    # The wget of a static busybox crashes when it resolves names.
    fetch = r"until printf 'GET /index.html HTTP/1.0\r\n\r\n' | nc -w 2 $0 80 | grep web; do sleep 0.2; done"
    for reader, name in (("reader", "web.default.svc.cluster.local"), ("neighbour", "web")):
        node.apply(pod(reader, node.shell_image, "timeout", "60", "sh", "-c", fetch, name))
        assert ended(node, reader)["exitCode"] == 0
        assert node.kubectl("logs", reader).endswith("it is the web server\n")
    # And from the node's network.
    address = node.get("service", "web")["spec"]["clusterIP"]
    assert fetch_inside(node, f"http://{address}") == "it is the web server\n"


def test_a_pod_reaches_the_api_server_by_its_service(node):
    authority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
    node.apply(pod("client", node.shell_image, "sh", "-c", f"test -s {authority} && nc -w 5 kubernetes 443 </dev/null"))
    assert ended(node, "client")["exitCode"] == 0


def test_the_kubelet_obeys_the_api_server_alone(node):
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"https://{node.address}:10250/pods", timeout=5, context=trust)


def test_this_machines_users_reach_neither_the_registry_nor_etcd(node):
    for address in (node.registry, f"{node.address}:5000", f"{node.address}:2379"):
        with pytest.raises((urllib.error.URLError, TimeoutError)):
            urllib.request.urlopen(f"http://{address}/", timeout=2)
    assert fetch_inside(node, f"http://{node.registry}/v2/") == "{}"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_cluster_that_ends_leaves_nothing(node, how):
    script = f"""
        kubectl run left --image={node.registry}/$(basename {node.shell_image}) -- sleep 3600 &&
        kubectl wait --for=condition=Ready --timeout=60s pod/left && echo $TEST_NODE_NAMESPACE && exec sleep 3600
    """
    command = [sys.executable, HERE / "run.py", "with", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
        name = ""
        while not name.startswith("wasmspawner-node-") and (line := run.stdout.readline()):
            name = line.strip()
        slot = Slot(int(name.rpartition("-")[2]))
        assert slot.name != node.name, "another cluster ran at the same time"
        assert slot.mounts(), "a container ran"
        assert slot.group.processes()
        run.send_signal(how)
    if how == signal.SIGKILL:
        for process in slot.group.processes():
            with suppress(ProcessLookupError):  # some end with the process that has started them
                os.kill(process, signal.SIGKILL)
        assert slot.mounts(), "nobody has cleaned up yet"
        assert subprocess.run([sys.executable, HERE / "run.py", "clean"]).returncode == 0
    assert not slot.mounts()
    assert not slot.namespace.exists()
    assert not slot.group.processes()
    assert not any(folder.exists() for folder in slot.group.folders)
    assert not Path(f"/sys/class/net/{slot.outer_link}").exists()
    assert not (HOME / str(slot.number)).exists()
    assert "Ready" in node.kubectl("get", "nodes"), "the other cluster still runs"
