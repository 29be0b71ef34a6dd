"""What a lab's user sees when a real kubelet runs the lab."""

import pytest
from lab_site import eventually


@pytest.fixture
def spawned(site):
    """Spawn a lab of a profile; it is stopped after the test. Returns a function."""
    users = []

    def spawn(user, profile):
        users.append(user)
        answer = site.spawn(user, profile)
        assert answer.status_code == 303, answer.text
        return site.events(user)

    yield spawn
    for user in users:
        site.stop(user)
        eventually(lambda user=user: not site.node.get("namespace", site.namespace(user)), "the namespace's end")


def test_a_jupyterlab_starts_answers_and_stops(site, spawned):
    events = spawned("ada", "jupyterlab")
    assert events[-1].kind == "complete"
    assert site.lab("ada")["status"] == "running"
    # The service says so only after the kubelet's probe has reached JupyterLab.
    container = site.pod("ada")["status"]["containerStatuses"][0]
    assert container["ready"]
    assert container["restartCount"] == 0
