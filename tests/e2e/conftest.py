import os
import sys
from pathlib import Path

import pytest
from world import World

# What a lab's image has installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk/python/src"))


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Service and Hub, shared by all tests of the session; each test has its own users."""
    world = World.at(tmp_path_factory.mktemp("state"))
    # Of all workers together: which files meet in one world differs from run to run.
    base = tmp_path_factory.getbasetemp()
    world.users = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "users"
    world.users.mkdir(exist_ok=True)
    with world.running():
        yield world
