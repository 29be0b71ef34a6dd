"""A site: Zero to JupyterHub, the service and a lab, with their network policies."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

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


def site(values: dict, namespace: str, objects: list[dict], config: dict) -> Site:
    """A site with these values of the Hub, objects of the service's chart, and configuration of the service."""
    jupyterhub = Hub(values, namespace)
    deployment = one(objects, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    of_service = Pod(deployment["metadata"]["namespace"], labels)
    printed = lab(config)
    pod = one(printed, "Pod")
    (port,) = pod["spec"]["containers"][0]["ports"]
    assert port["containerPort"] == 8888
    of_lab = Pod(pod["metadata"]["namespace"], pod["metadata"]["labels"])
    policies = [*jupyterhub.policies(), one(objects, "NetworkPolicy"), one(printed, "NetworkPolicy")]
    return Site(jupyterhub.hub, jupyterhub.proxy, of_service, of_lab, policies)


def runnable(config: dict) -> dict:
    """A configuration of the chart with paths of this machine."""
    result = service.runnable(config, Path("unused"))
    del result["state_dir"]
    return result


def lab(config: dict, *arguments: str) -> list[dict]:
    """The objects of a lab of ada. Raises `subprocess.CalledProcessError` if there is none."""
    return list(yaml.safe_load_all(_printed(yaml.safe_dump(config), arguments)))


@cache
def _printed(config: str, arguments: tuple[str, ...]) -> str:
    """What `wasmspawner render` prints. It compiles the policies each time, which takes seconds."""
    with NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(config)
        file.flush()
        return service.printed("render", "-c", file.name, "--user", "ada", *arguments)


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
