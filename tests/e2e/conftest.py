import sys
from pathlib import Path

import pytest
from world import World

# What a lab's image has installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk/python/src"))


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Service and Hub, shared by all tests of the session; each test has its own users."""
    with World.at(tmp_path_factory.mktemp("state")).running() as world:
        yield world
