import pytest
from world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Service and Hub, shared by all tests of the session; each test has its own users."""
    with World.at(tmp_path_factory.mktemp("state")).running() as world:
        yield world
