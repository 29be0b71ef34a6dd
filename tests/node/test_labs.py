"""What a lab's user sees when a real kubelet runs the lab."""

import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from lab_site import eventually

STAGES = {"Scheduling", "Initializing", "Pulling", "Starting", "Running"}


def test_a_jupyterlab_starts_answers_and_stops(site, spawned):
    events = spawned("ada", "jupyterlab")
    assert events[-1].kind == "complete", events[-1].data
    # A stage that was over before the service saw the pod is not reported.
    seen = [event.stage["stage"] for event in events if event.kind == "stage"]
    assert set(seen) <= STAGES
    assert seen[-1] == "Running"
    assert site.lab("ada")["status"] == "running"
    # The service says so only after the kubelet's probe has reached JupyterLab. Soon after a kubelet's start, it may take
    # the first readiness back for a second.
    eventually(lambda: site.pod("ada")["status"]["containerStatuses"][0]["ready"], "it is ready to stay")
    assert site.pod("ada")["status"]["containerStatuses"][0]["restartCount"] == 0


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


def test_a_running_lab_that_ends_is_restarted_and_its_user_is_told(site, running):
    running("ivy", "mortal")
    site.node.kubectl("exec", "nb-ivy", "-n", site.namespace("ivy"), "--", "touch", "/tmp/end")
    eventually(lambda: site.lab("ivy")["restarts"] == 1, "the restart")
    eventually(lambda: site.pod("ivy")["status"]["containerStatuses"][0]["ready"], "it is ready again")
    lab = site.lab("ivy")
    assert lab["status"] == "running"
    assert "exit code 3" in lab["message"]


def test_a_lab_runs_on_when_the_kubelet_and_the_container_runtime_are_killed(site, running):
    running("joy", "plain")
    container = site.pod("joy")["status"]["containerStatuses"][0]["containerID"]
    for program in ("containerd", "kubelet"):
        site.node.processes.crash(program)
    eventually(lambda: enters(site, "joy"), "the kubelet answers again")
    status = site.pod("joy")["status"]["containerStatuses"][0]
    assert (status["containerID"], status["restartCount"]) == (container, 0)
    lab = site.lab("joy")
    assert (lab["status"], lab["restarts"]) == ("running", 0)


def test_a_process_that_takes_too_much_memory_ends_alone_or_with_its_lab(site, running):
    running("kim", "plain")
    take_too_much = "dd if=/dev/zero of=/dev/null bs=1500M count=1 2>/dev/null; echo ended with $?"
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        # With version 2 of control groups the kubelet lets the kernel kill all processes of the container.
        with suppress(subprocess.CalledProcessError):
            site.run_inside("kim", take_too_much)
        eventually(lambda: site.lab("kim")["restarts"] == 1, "the restart")
        assert "used more memory than it was given and was restarted" in site.lab("kim")["message"]
    else:
        # With version 1 the kernel kills one process. The kubelet does not report that: no event is about it (its
        # SystemOOM is for processes outside of pods), and the container's status stays the same. So nobody can tell the
        # user but the program that had started the process, as Jupyter does when a kernel dies.
        assert site.run_inside("kim", take_too_much) == "ended with 137\n"
        assert site.run_inside("kim", "cat /proc/1/comm") == "httpd\n"
        lab = site.lab("kim")
        assert (lab["status"], lab["restarts"], lab["message"]) == ("running", 0, "Your lab is running.")


def test_an_image_that_is_gone_from_the_node_is_downloaded_again_and_the_user_sees_it(site, spawned, requested):
    image = site.node.shell_image
    assert f'Container image "{image}" already present on machine' in infos(spawned("leo", "plain"))
    site.stop_to_end("leo")
    site.node.runtime.remove(image)
    # The registry answers nobody for a while.
    registry = site.node.processes.children["registry"]
    registry.send_signal(signal.SIGSTOP)
    try:
        requested("leo", "plain")
        eventually(lambda: site.lab("leo")["stage"] == "Pulling", "it is downloaded")
        assert site.lab("leo")["message"] == f"Downloading the image {image}. This may take some minutes."
    finally:
        registry.send_signal(signal.SIGCONT)
    events = site.events("leo")
    assert events[-1].kind == "complete", events[-1].data
    assert f'Pulling image "{image}"' in infos(events)
    assert f'Successfully pulled image "{image}"' in infos(events)


def infos(events):
    """What the user was told, one line for each event."""
    return "\n".join(event.data for event in events if event.kind == "info")


def enters(site, user):
    """Whether the kubelet can run a program in the user's lab."""
    try:
        site.node.kubectl("exec", f"nb-{user}", "-n", site.namespace(user), "--", "true", seconds=10)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False
    return True
