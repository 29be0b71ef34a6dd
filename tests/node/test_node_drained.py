"""What happens to labs when the administrator empties their node."""

import json

import pytest
from kubelet import NODE
from lab_site import eventually

LABS = "app.kubernetes.io/managed-by=wasmspawner"
DRAIN = ("drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--pod-selector={LABS}")


@pytest.fixture
def uncordon(node):
    """Let the node take pods again, after the test at the latest. Returns a function."""

    def now():
        node.kubectl("uncordon", NODE)

    yield now
    now()


def test_a_drained_lab_is_gone_and_the_next_one_waits_until_the_node_is_back(site, requested, running, uncordon):
    running("kai", "plain")
    site.node.kubectl(*DRAIN, seconds=90)
    # For the Hub the lab is stopped; what is left of it is deleted without being asked.
    eventually(lambda: not site.lab("kai"), "the lab is stopped")
    site.wait_until_gone("kai")
    assert not site.node.get("namespace", site.namespace("kai"))
    ended = site.history("kai")[0]
    assert (ended["kind"], ended["outcome"]) == ("cleanup", "complete")

    requested("kai", "plain")
    eventually(lambda: site.lab("kai")["reason"] == "Unschedulable", "it waits for a node")
    lab = site.lab("kai")
    assert (lab["status"], lab["stage"]) == ("starting", "Scheduling")
    assert "(0/1 nodes are available: 1 node(s) " in lab["message"]
    uncordon()
    last = site.events("kai")[-1]
    assert last.kind == "complete", last.data


def test_the_user_of_an_evicted_lab_is_told_that_the_cluster_removed_it(site, running):
    running("lee", "plain")
    evict(site.node, site.namespace("lee"), "nb-lee")
    site.wait_until_gone("lee")
    told = [event["data"] for event in site.history("lee")[0]["events"] if event["type"] in ("info", "error")]
    assert any("The cluster removed your lab from its machine" in text for text in told), told


def test_a_lab_that_is_evicted_while_it_starts_fails_and_says_why(site, requested):
    requested("mia", "slow")
    eventually(lambda: site.lab("mia")["stage"] == "Starting", "it starts")
    evict(site.node, site.namespace("mia"), "nb-mia")
    events = site.events("mia")
    assert events[-1].kind == "failed"
    assert "The cluster removed your lab from its machine" in events[-1].data
    assert site.lab("mia")["reason"] == "EvictionByEvictionAPI"
    eventually(lambda: not site.pod("mia"), "the pod's end")


def evict(node, namespace, pod):
    """Do to a pod what `kubectl drain` does to all pods of a node."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
    url = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    node.kubectl("create", "--raw", url, "-f", "-", stdin=json.dumps(eviction))
