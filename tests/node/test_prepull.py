"""A real kubelet pulls images before somebody asks for them."""

import images
import pytest
from lab_site import NAMESPACE, eventually

from toolchain import ROOT

PREPULL_PODS = ["pods", "-n", NAMESPACE, "-l", "wasmspawner.io/prepull"]


@pytest.fixture(autouse=True)
def permissions(node, site):
    for file in ("nodes.yaml", "prepull.yaml"):
        node.kubectl("apply", "-f", str(ROOT / "deploy/permissions" / file))


def test_a_node_pulls_what_it_is_to_have_and_no_pod_stays(node, site, reconfigure, tmp_path):
    warm = node.push(images.distinct(images.shell(), tmp_path, "warm").source, "warm:1")
    # Without a program that ends at once.
    bare = node.push(images.distinct(images.pause(), tmp_path, "bare").source, "bare:1")
    missing = f"{node.registry}/not-there:1"

    def change(config):
        repository = {"name": f"{node.registry}/warm"}
        wanted = [{"reference": reference} for reference in (warm, bare, missing)]
        config["registries"] = {"plain_http": [node.registry]}
        config["images"] = {"nodes": {}, "repositories": [repository], "prepull": {"images": wanted}}

    reconfigure(change)

    def has(reference):
        return any(each["reference"] == reference and each["nodes_with"] == 1 for each in site.prepulls()["images"])

    eventually(lambda: has(warm), "the node has the image", 120)
    digest = next(each["digest"] for each in site.prepulls()["images"] if each["reference"] == warm)
    assert digest.startswith("sha256:"), "it is pulled by the digest that the registry has"
    eventually(lambda: has(bare), "the node has the image that has no program", 120)
    failed = eventually(lambda: site.prepulls()["failed"], "the image that does not exist is reported", 120)
    assert failed[0]["image"].endswith("/not-there:1")
    assert failed[0]["reason"].startswith("ErrImagePull: ")
    assert "not found" in failed[0]["reason"]
    eventually(lambda: not node.get(*PREPULL_PODS).get("items"), "no pod stays")
    # A kubelet that has just started says what it has after a while.
    eventually(lambda: f"{node.registry}/warm@{digest}" in on_node(node), "the node says that it has the image", 120)


def on_node(node):
    """The names of the images that the node reports."""
    reported = node.get("nodes")["items"][0]["status"].get("images", [])
    return [name for image in reported for name in image["names"]]


def test_a_cordoned_node_pulls_nothing_until_it_takes_labs_again(node, site, reconfigure, tmp_path):
    late = node.push(images.distinct(images.shell(), tmp_path, "late").source, "late:1")
    name = node.get("nodes")["items"][0]["metadata"]["name"]
    node.kubectl("cordon", name)
    try:
        reconfigure(lambda config: config.update(images={"nodes": {}, "prepull": {"images": [{"reference": late}]}}))
        excluded = eventually(lambda: site.prepulls()["excluded_nodes"], "the node is excluded")
        assert excluded == [{"name": name, "excluded": "it is cordoned"}]
        wanted = eventually(lambda: site.prepulls()["images"], "the image is to be pulled")
        assert wanted[0]["nodes"] == 0
    finally:
        node.kubectl("uncordon", name)
    eventually(lambda: site.prepulls()["images"][0]["nodes_with"] == 1, "it is warm", 120)
