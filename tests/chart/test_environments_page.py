"""The walk-throughs of deploy/ENVIRONMENTS.md, with kubectl and the service, on a real control plane."""

import os
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import service
import yaml
from chart import DEPLOY
from cluster import DEFINITIONS
from console import Session

PAGE = DEPLOY / "ENVIRONMENTS.md"
# Names on the page: the service's own namespace, and those of the site.
HOME = "wasmspawner"
SITE_S = ("physics-labs", "gpu-labs")
OTHER_URL = "https://gpu.example.org:6443"


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
    """The service with `environments: {}` and all permissions."""
    health = service.free_address()
    tokens = folder / "tokens.yaml"
    tokens.touch(mode=0o600)
    config = {
        "http": {"listen": service.free_address(), "health_listen": health},
        "auth": {"modes": ["static"], "static": {"tokens_file": str(tokens)}},
        "kubernetes": {"kubeconfig": cluster.kubeconfig, "namespace": HOME},
        "environments": {},
        "state_dir": str(folder / "state"),
    }
    file, log = folder / "wasmspawner.yaml", folder / "service.log"
    file.write_text(yaml.safe_dump(config))
    with open(log, "w") as output:
        process = subprocess.Popen([service.program(), "serve", "--config", file], stdout=output, stderr=output)

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            return urllib.request.urlopen(f"http://{health}/readyz", timeout=5).status == 200
        except (urllib.error.URLError, OSError):
            return False

    try:
        cluster.until(is_ready, "the service is ready")
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


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
    with running(cluster, tmp_path):
        assert session.follow(PAGE.read_text()) > 25
    assert cluster.get("dtc,dt,env,dtcls", "-n", home)["items"] == [], "the page removes what it has made"
