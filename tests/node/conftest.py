import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "control-plane"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy/local"))

import machine
from node import Node
from node_programs import Programs

import toolchain


@pytest.fixture(scope="session")
def programs():
    try:
        machine.prepare()
        return Programs.built()
    except toolchain.Missing as missing:
        pytest.skip(f"skipped: tests on a real node; {missing}")


@pytest.fixture(scope="session")
def node(programs):
    """A cluster, shared by all tests of the session; each test has its own names."""
    with Node(programs) as node:
        yield node


@pytest.fixture(scope="session")
def site(node, tmp_path_factory):
    """The service on that cluster; each test has its own users."""
    from lab_site import LabSite

    with LabSite(node, tmp_path_factory.mktemp("site")) as site:
        yield site
