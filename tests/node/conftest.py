import sys
from contextlib import ExitStack
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
    """The service on that cluster; each test has its own users. Tests of the chart come before (their file's name is an
    earlier one), because the cluster cannot have the objects of both for all namespaces."""
    from lab_site import LabSite

    with LabSite(node, tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture
def reconfigure(site):
    """Let the service run with another configuration until the end of the test. Returns a function."""
    with ExitStack() as until_the_end:
        yield lambda change: until_the_end.enter_context(site.reconfigured(change))


@pytest.fixture
def requested(site, reconfigure):
    """Ask for a lab of a profile; it is stopped after the test, and before the site's usual configuration returns.
    Returns a function."""
    from lab_site import SHARED_NAMESPACE

    users = set()

    def request(user, profile):
        users.add(user)
        answer = site.spawn(user, profile)
        assert answer.status_code == 303, answer.text

    yield request
    for user in users:
        site.stop_to_end(user)
        namespace = site.node.get("namespace", site.namespace(user))
        assert not namespace or namespace["metadata"]["name"] == SHARED_NAMESPACE


@pytest.fixture
def spawned(site, requested):
    """Ask for a lab, and return the events of its start when it has ended. Returns a function."""

    def spawn(user, profile):
        requested(user, profile)
        return site.events(user)

    return spawn


@pytest.fixture
def running(spawned):
    """Ask for a lab, and wait until it runs. Returns a function."""

    def run(user, profile):
        last = spawned(user, profile)[-1]
        assert last.kind == "complete", last.data

    return run
