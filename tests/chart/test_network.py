"""Hub, proxy, service and labs reach each other on networks that do not count pods as addresses, and reach nothing more."""

import copy
import subprocess

import pytest
import service
import yaml
from chart import SOURCE, configuration, merged
from helm import HERE
from network import Pod
from site_network import API, VALUES, Site, assert_connected, assert_separate, runnable, site

import toolchain

IMAGE = {"image": {"repository": "registry.example.org/wasmspawner"}}


@pytest.fixture
def example(chart):
    """The site of deploy/zero-to-jupyterhub/values.yaml, with other values of the Hub if there are any."""

    def made(values=None, **of_chart) -> Site:
        objects = chart.render(SOURCE / "examples/zero-to-jupyterhub.yaml", of_chart, namespace="jupyterhub")
        values = values or yaml.safe_load(VALUES.read_text())
        return site(values, "jupyterhub", objects, runnable(configuration(objects)))

    return made


@pytest.fixture
def moved(chart, tmp_path):
    """The site that `wasmspawner migrate` makes of values of KubeSpawner."""

    def made(values: dict, root: str = "") -> Site:
        before, folder = tmp_path / "values.yaml", tmp_path / "moved"
        before.write_text(yaml.safe_dump({root: values} if root else values))
        policy = toolchain.policy("policy-default")
        command = [service.program(), "migrate", "zero-to-jupyterhub", "-f", before, "--output", folder]
        ended = subprocess.run([*command, "--policy", policy], capture_output=True, text=True)
        assert ended.returncode in (0, 3), ended.stderr
        new = yaml.safe_load((folder / "hub-values.yaml").read_text())
        objects = chart.render(folder / "chart-values.yaml", IMAGE, namespace="wasmspawner")
        all_values = merged(values, new[root] if root else new)
        return site(all_values, "jhub", objects, yaml.safe_load((folder / "wasmspawner.yaml").read_text()))

    return made


@pytest.mark.parametrize("pods_are_addresses", [False, True])
def test_the_site_of_the_example_is_connected(example, pods_are_addresses):
    made = example()
    assert made.lab.namespace != made.hub.namespace
    network = made.network(pods_are_addresses=pods_are_addresses)
    assert_connected(made, network)
    assert_separate(made, network)


def test_without_the_rules_hub_and_proxy_reach_labs_by_address_only(example):
    values = yaml.safe_load(VALUES.read_text())
    del values["hub"]["networkPolicy"]["egress"], values["proxy"]
    made = example(values)
    for source, target, port in [
        (made.hub, made.lab, 8888),
        (made.proxy, made.lab, 8888),
        (made.hub, made.service, API),
    ]:
        assert made.network(pods_are_addresses=True).lets(source, target, port)
        assert not made.network().lets(source, target, port), (source, target, port)


def test_labs_that_may_start_kernels_reach_the_service(example):
    made = example(kernels={"enabled": True})
    network = made.network()
    assert_connected(made, network)
    assert network.lets(made.lab, made.service, API)
    unmarked = Pod(made.lab.namespace, {"app.kubernetes.io/managed-by": "wasmspawner"})
    assert not network.lets(unmarked, made.service, API)


@pytest.mark.parametrize("root", ["", "jupyterhub"])
def test_a_site_that_was_moved_is_connected(moved, root):
    values = yaml.safe_load((HERE / "kubespawner-site.yaml").read_text())
    made = moved(values, root)
    assert (made.hub.namespace, made.lab.namespace, made.service.namespace) == ("jhub", "jhub", "wasmspawner")
    network = made.network()
    assert_connected(made, network)
    assert_separate(made, network)


def test_rules_of_the_site_for_hub_and_proxy_stay(moved):
    """Helm replaces lists, so the new values repeat them."""
    database = Pod("databases", {"app": "postgres"})
    rule = {
        "to": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "databases"}},
                "podSelector": {"matchLabels": {"app": "postgres"}},
            }
        ],
        "ports": [{"port": 5432, "protocol": "TCP"}],
    }
    values = yaml.safe_load((HERE / "kubespawner-site.yaml").read_text())
    policy = {"networkPolicy": {"egress": [rule]}}
    both = merged(copy.deepcopy(values), {"hub": policy, "proxy": {"chp": policy}})
    made = moved(both)
    network = made.network()
    assert_connected(made, network)
    assert_separate(made, network)
    assert network.lets(made.hub, database, 5432)
    assert network.lets(made.proxy, database, 5432)
