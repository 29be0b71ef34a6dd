"""The walk-throughs of deploy/ENVIRONMENTS.md, with kubectl and the service, on a real control plane."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
import service
import yaml
from chart import DEPLOY
from cluster import DEFINITIONS
from console import Session

import toolchain

PAGE = DEPLOY / "ENVIRONMENTS.md"
# Names on the page: the service's own namespace, and those of the site.
HOME = "wasmspawner"
SITE_S = ("physics-labs", "gpu-labs")
OTHER_URL = "https://gpu.example.org:6443"
HERE_LABS_START = "A policy that answers `environment/gpu` now starts labs there."


@pytest.fixture
def home(cluster):
    """The service's own namespace, in a cluster with the definitions and without anything of an earlier test."""
    if taken := [name for name in (HOME, *SITE_S) if cluster.exists("namespace", name)]:
        pytest.skip(f"skipped: the cluster has the namespace {taken[0]}, which the page makes")
    cluster.remove_definitions()
    cluster.kubectl("apply", "-f", DEPLOY / "crds.yaml")
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *(f"crd/{name}" for name in DEFINITIONS))
    cluster.kubectl("create", "namespace", HOME)
    cluster.namespaces += [HOME, *SITE_S]
    yield HOME
    cluster.remove_definitions()


@contextmanager
def running(cluster, folder: Path):
    """The service with `environments: {}` and all permissions, and a policy that chooses `environment/gpu`. Yields the URL
    of a lab."""
    listen = service.free_address()
    tokens = folder / "tokens.yaml"
    tokens.touch(mode=0o600)
    tokens.write_text(yaml.safe_dump([service.entry("ada", ["exec:notebook"])]))
    image = {"name": "minimal", "label": "Minimal", "reference": "quay.io/jupyter/minimal-notebook:python-3.13"}
    policy = {"images": [image], "environment_class": "environment/gpu"}
    config = {
        "http": {"listen": listen, "health_listen": service.free_address()},
        "auth": {"modes": ["static"], "static": {"tokens_file": str(tokens)}},
        "kubernetes": {"kubeconfig": cluster.kubeconfig, "namespace": HOME},
        "environments": {},
        "policies": [{"name": "default", "path": str(toolchain.policy("policy-default")), "config": policy}],
        "state_dir": str(folder / "state"),
    }
    file, log, lab = folder / "wasmspawner.yaml", folder / "service.log", f"http://{listen}/spawner/v1/labs/ada"
    file.write_text(yaml.safe_dump(config))
    with open(log, "w") as output:
        process = subprocess.Popen([service.program(), "serve", "--config", file], stdout=output, stderr=output)

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            return ask("GET", lab).status_code == 404
        except requests.RequestException:
            return False

    try:
        cluster.until(is_ready, "the service is ready")
        yield lab
    finally:
        process.terminate()
        process.wait(timeout=60)


def ask(method: str, url: str) -> requests.Response:
    """A request of the user."""
    headers = {"Authorization": f"Bearer {service.token('ada')}"}
    body = {"options": {}} if method == "POST" else None
    return requests.request(method, url, headers=headers, json=body, allow_redirects=False, timeout=30)


def kubeconfig(cluster, folder: Path) -> tuple[Path, str]:
    """A kubeconfig with the contexts of the page, both of which lead to the one cluster, and the URL of that."""
    config = yaml.safe_load(Path(cluster.kubeconfig).read_text())
    known = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
    config["contexts"] = [{"name": name, "context": dict(known)} for name in ("site", "gpu")]
    config["current-context"] = "site"
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    of_cluster = next(each["cluster"] for each in config["clusters"] if each["name"] == known["cluster"])
    return path, of_cluster["server"]


def test_the_walk_throughs_of_the_page_print_what_it_says(cluster, home, tmp_path):
    config, url = kubeconfig(cluster, tmp_path)
    folder = tmp_path / "reader"
    folder.mkdir()
    session = Session(folder, os.environ | {"KUBECONFIG": str(config)}, {OTHER_URL: url})
    before, after = PAGE.read_text().split(HERE_LABS_START)
    with running(cluster, tmp_path) as lab:
        assert session.follow(before) > 35
        a_lab_starts_there_with_the_credentials_of_the_secret(cluster, lab, tmp_path / "service.log")
        assert session.follow(after) == 2
    assert cluster.get("dtc,dt,env,dtcls", "-n", home)["items"] == [], "the page removes what it has made"


def a_lab_starts_there_with_the_credentials_of_the_secret(cluster, lab: str, log: Path):
    started = ask("POST", f"{lab}/spawn")
    assert started.status_code == 303, started.text
    cluster.until(lambda: cluster.exists("pod", "nb-ada", "-n", "gpu-labs"), f"a pod; {log.read_text()[-3000:]}")
    assert "the credentials of a cluster are in use" in log.read_text()
    assert ask("DELETE", lab).status_code == 202
    cluster.until(lambda: ask("GET", lab).status_code == 404, "the lab is gone")
    assert not cluster.exists("pod", "nb-ada", "-n", "gpu-labs")
