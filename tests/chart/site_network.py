"""A site: Zero to JupyterHub, the service and a lab, with their network policies."""

from dataclasses import dataclass
from pathlib import Path

import service
import yaml
from chart import DEPLOY, one
from network import Network, Pod
from zero_to_jupyterhub import Hub

VALUES = DEPLOY / "zero-to-jupyterhub/values.yaml"
STRANGER = Pod("elsewhere", {"app": "jupyterhub", "component": "hub"})
API = 8090


@dataclass
class Site:
    """The pods of a site, and its policies."""

    hub: Pod
    proxy: Pod
    service: Pod
    lab: Pod
    policies: list[dict]

    def network(self, **how: bool) -> Network:
        return Network(self.policies, **how)


def site(values: dict, namespace: str, objects: list[dict], config: dict | Path, folder: Path) -> Site:
    """A site with these values of the Hub, objects of the service's chart, and the service's configuration: a file, or its
    content."""
    jupyterhub = Hub(values, namespace)
    deployment = one(objects, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    of_service = Pod(deployment["metadata"]["namespace"], labels)
    if isinstance(config, dict):
        text, config = yaml.safe_dump(service.runnable(config, folder)), folder / "wasmspawner.yaml"
        config.write_text(text)
    printed = list(yaml.safe_load_all(service.printed("render", "-c", str(config), "--user", "ada")))
    lab = one(printed, "Pod")
    (port,) = lab["spec"]["containers"][0]["ports"]
    assert port["containerPort"] == 8888
    of_lab = Pod(lab["metadata"]["namespace"], lab["metadata"]["labels"])
    policies = [*jupyterhub.policies(), one(objects, "NetworkPolicy"), one(printed, "NetworkPolicy")]
    return Site(jupyterhub.hub, jupyterhub.proxy, of_service, of_lab, policies)


def assert_connected(site: Site, network: Network) -> None:
    """All that have to reach each other do."""
    for source, target, port in [
        (site.hub, site.lab, 8888),
        (site.proxy, site.lab, 8888),
        (site.hub, site.service, API),
        (site.service, site.hub, 8081),
        (site.lab, site.hub, 8081),
        (site.hub, site.proxy, 8001),
        (site.proxy, site.hub, 8081),
    ]:
        assert network.lets(source, target, port), (source, target, port)


def assert_separate(site: Site, network: Network) -> None:
    """Nobody else reaches a lab or the service."""
    for source, target, port in [
        (STRANGER, site.lab, 8888),
        (STRANGER, site.service, API),
        (STRANGER, site.hub, 8081),
        (site.lab, site.service, API),
        (site.service, site.lab, 8888),
        (site.hub, site.lab, 22),
        (site.proxy, site.service, API),
    ]:
        assert not network.lets(source, target, port), (source, target, port)
