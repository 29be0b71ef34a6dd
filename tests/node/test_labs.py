"""What a lab's user sees when a real kubelet runs the lab, or cannot."""

import json

import pytest
from lab_site import eventually


@pytest.fixture
def spawned(site, record_property):
    """Spawn a lab of a profile; it is stopped after the test. Returns a function."""
    users = []

    def spawn(user, profile):
        users.append(user)
        answer = site.spawn(user, profile)
        assert answer.status_code == 303, answer.text
        events = site.events(user)
        print(json.dumps([vars(event) for event in events], indent=1))
        return events

    yield spawn
    for user in users:
        site.stop(user)
        eventually(lambda user=user: not site.node.get("namespace", site.namespace(user)), "the namespace's end")


def stages(events):
    """The stages with their reasons, without repetitions."""
    found = []
    for event in events:
        if event.kind == "stage":
            stage = (event.stage["stage"], event.stage["reason"])
            if stage not in found[-1:]:
                found.append(stage)
    return found


def test_a_jupyterlab_starts_answers_and_stops(site, spawned):
    events = spawned("ada", "jupyterlab")
    print(site.pod("ada"), site.lab("ada"), stages(events))
    assert events[-1].kind == "complete"


@pytest.mark.parametrize(
    ("user", "profile"),
    [
        ("bob", "plain"),
        ("cleo", "missing"),
        ("dora", "locked"),
        ("emil", "crashing"),
        ("fay", "plain"),
        ("gus", "greedy"),
        ("hal", "greedy-process"),
        ("ida", "huge"),
    ],
)
def test_explore(site, spawned, user, profile):
    events = spawned(user, profile)
    print(json.dumps(site.pod(user)), site.lab(user), stages(events))
    assert 0


def test_quota(site):
    answer = site.spawn("jo", "beyond-quota")
    print(answer.status_code, answer.text)
    assert 0
