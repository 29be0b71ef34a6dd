import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import helm as helms
from chart import SOURCE, Chart
from cluster import Cluster

import toolchain


@pytest.fixture(scope="session")
def helm(tmp_path_factory):
    try:
        return helms.Helm(tmp_path_factory.mktemp("helm"), os.environ.get("TEST_KUBECONFIG", ""))
    except toolchain.Missing as missing:
        pytest.skip(f"skipped: tests of the chart; {missing}")


@pytest.fixture(scope="session")
def chart(helm, tmp_path_factory):
    """The packed chart: what sites get, with files in place of links."""
    folder = tmp_path_factory.mktemp("chart")
    helm.run("package", SOURCE, "-d", folder)
    (archive,) = folder.glob("*.tgz")
    return Chart(helm, archive, tmp_path_factory.mktemp("values"))


@pytest.fixture(scope="session")
def cluster(helm):
    if not (config := os.environ.get("TEST_KUBECONFIG")):
        pytest.skip("skipped: TEST_KUBECONFIG names no cluster")
    if not shutil.which("kubectl"):
        pytest.skip("skipped: there is no kubectl")
    cluster = Cluster(config, f"chart-{os.getpid()}")
    cluster.install_fakes()
    try:
        yield cluster
    finally:
        cluster.leave()
