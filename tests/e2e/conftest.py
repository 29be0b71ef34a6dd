import pytest
from world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Service and Hub, shared by all tests of the session; each test has its own users."""
    world = World.at(tmp_path_factory.mktemp("state"))
    try:
        world.start_service()
        world.start_hub()
        yield world
    finally:
        world.close()
