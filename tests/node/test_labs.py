"""What a lab's user sees when a real kubelet runs the lab."""

import subprocess

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


STAGES = {"Scheduling", "Initializing", "Pulling", "Starting", "Running"}


def test_a_jupyterlab_starts_answers_and_stops(site, spawned):
    events = spawned("ada", "jupyterlab")
    assert events[-1].kind == "complete"
    # A stage that was over before the service saw the pod is not reported.
    seen = [event.stage["stage"] for event in events if event.kind == "stage"]
    assert set(seen) <= STAGES
    assert seen[-1] == "Running"
    assert site.lab("ada")["status"] == "running"
    # The service says so only after the kubelet's probe has reached JupyterLab.
    container = site.pod("ada")["status"]["containerStatuses"][0]
    assert container["ready"]
    assert container["restartCount"] == 0


@pytest.mark.parametrize(
    ("user", "profile", "reason", "message"),
    [
        ("bea", "missing", "ErrImagePull", "the registry has no image of this name and tag"),
        ("cat", "locked", "ErrImagePull", "the registry refuses access to it, or it does not exist"),
        ("dot", "crashing", "CrashLoopBackOff", "Your lab stopped unexpectedly (exit code 3) and was restarted"),
        ("eve", "greedy", "OOMKilled", "Your lab used more memory than it was given and was stopped."),
        ("fay", "plain", "CrashLoopBackOff", 'The preparation step "home" stopped unexpectedly (exit code 4)'),
        ("gil", "huge", "SpawnTimeout", "(0/1 nodes are available: 1 Insufficient cpu)"),
        ("hal", "beyond-quota", "InvalidRequest", "the lab would need 64Gi, but your quota is 8Gi"),
    ],
)
def test_a_lab_that_cannot_start_says_why(site, spawned, user, profile, reason, message):
    events = spawned(user, profile)
    assert events[-1].kind == "failed"
    assert message in events[-1].data
    lab = site.lab(user)
    assert (lab["status"], lab["reason"]) == ("failed", reason)
    # What was created is deleted without being asked.
    eventually(lambda: not site.pod(user), "the pod's end")


def test_a_running_lab_that_ends_is_restarted_and_its_user_is_told(site, spawned):
    assert spawned("ivy", "mortal")[-1].kind == "complete"
    site.node.kubectl("exec", "nb-ivy", "-n", site.namespace("ivy"), "--", "touch", "/tmp/end")
    eventually(lambda: site.lab("ivy")["restarts"] == 1, "the restart")
    eventually(lambda: site.pod("ivy")["status"]["containerStatuses"][0]["ready"], "it is ready again")
    lab = site.lab("ivy")
    assert lab["status"] == "running"
    assert "exit code 3" in lab["message"]


def test_a_lab_runs_on_when_the_kubelet_and_the_container_runtime_are_killed(site, spawned):
    assert spawned("joy", "plain")[-1].kind == "complete"
    container = site.pod("joy")["status"]["containerStatuses"][0]["containerID"]
    for program in ("containerd", "kubelet"):
        site.node.processes.crash(program)
    eventually(lambda: enters(site, "joy"), "the kubelet answers again")
    status = site.pod("joy")["status"]["containerStatuses"][0]
    assert (status["containerID"], status["restartCount"]) == (container, 0)
    lab = site.lab("joy")
    assert (lab["status"], lab["restarts"]) == ("running", 0)


def enters(site, user):
    """Whether the kubelet can run a program in the user's lab."""
    try:
        site.node.kubectl("exec", f"nb-{user}", "-n", site.namespace(user), "--", "true", seconds=10)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False
    return True
