"""What users are told about labs on a real node is what they are told about simulated ones, which most tests use."""

import re
from itertools import groupby

import pytest
from lab_site import FILL_MEMORY, SERVE, eventually
from simulated_site import SimulatedSite

# What happens to a lab, on the real node and in the simulation.
REAL = {
    "ordinary": SERVE,
    "no-image": "true",
    "crash-loop": "sleep 1; exit 1",
    "out-of-memory": f"sleep 1; exec {FILL_MEMORY}",
}
SIMULATED = {
    "no-image": {"fault": "pull-failure"},
    "crash-loop": {"fault": "crash-loop", "fault-after": "1s"},
    "out-of-memory": {"fault": "oom", "fault-after": "1s"},
}

# What one side may say and the other not, because of the time that something takes.
SOMETIMES = [
    # The scheduler may be done before the service sees the pod.
    r"Looking for a machine for your lab\.",
    # The simulation takes no time from one container to the next, or from the end of a container to its first restart.
    r"Starting your lab\.",
    r"Your lab stopped unexpectedly \(exit code 1\) and is being restarted\.",
    # Events about a download that has failed may come after the spawn has failed for that reason.
    r"Pulling image .*",
    r"Failed to pull image .*",
    r"Error: ErrImagePull",
    r"Back-off pulling image .*",
]
BRIEF_STAGES = {("Scheduling", "Scheduling"), ("Starting", "PodInitializing")}
# On one machine labs reach the service without being configured for that, and have the variables of it.
ENV_TO_REACH_THE_SERVICE = r"WASMSPAWNER_.*|JUPYTERHUB_(USER|SERVER_NAME)"
# Names, times and addresses; and of a failed lab how much was done before, which a brief stage may change, and how much
# of it is deleted.
NOT_COMPARED = {"job_id", "started_at", "url"}
NOT_COMPARED_OF_FAILED = {"progress", "stage", "pod"}


@pytest.fixture
def simulated(node, site, reconfigure, tmp_path):
    """A simulated site with the profiles of `REAL`, which the real site has, too."""

    def change(config):
        policy = config["policies"][0]["config"]
        plain = next(profile for profile in policy["profile_list"] if profile["slug"] == "plain")
        override = plain["kubespawner_override"]
        policy["profile_list"] = [
            {"display_name": name, "slug": name, "kubespawner_override": override | {"cmd": ["sh", "-c", command]}}
            for name, command in REAL.items()
        ]
        policy["profile_list"][1]["kubespawner_override"]["image"] = f"{node.registry}/missing:1"
        small = policy["profile_list"][3]["kubespawner_override"]
        small["mem_limit"] = "64M"

    reconfigure(change)
    simulated = SimulatedSite(node, tmp_path)
    simulated.start(simulated.configure(site.config, SIMULATED))
    yield simulated
    simulated.end()


@pytest.mark.parametrize("profile", REAL)
def test_a_user_is_told_the_same_as_in_the_simulation(site, simulated, spawned, profile):
    user = f"rec-{profile}"
    spawned(user, profile)
    assert simulated.spawn(user, profile).status_code == 303
    real, simulation = record(site, user), record(simulated, user)
    assert real == simulation


def record(site, user):
    """The stages of a lab's start, what its user was told, and the lab as it was afterwards."""
    events = site.events(user)
    if events[-1].kind == "complete":
        # Soon after a kubelet's start, it may take a pod's first readiness back for a second.
        eventually(lambda: site.lab(user)["stage"] == "Running", "it is ready to stay")
    lab = site.lab(user)
    lab["env"] = {name: value for name, value in lab["env"].items() if not re.fullmatch(ENV_TO_REACH_THE_SERVICE, name)}
    stages = [(event.stage["stage"], event.stage["reason"]) for event in events if event.kind == "stage"]
    lasting = [stage for stage in stages if stage not in BRIEF_STAGES]
    told = {(event.kind, anonymous(event.data)) for event in events if event.kind not in ("stage", "progress")}
    hidden = NOT_COMPARED | (NOT_COMPARED_OF_FAILED if lab["status"] == "failed" else set())
    return {
        "stages": [stage for stage, _ in groupby(lasting)],
        "told": {f"{kind}: {text}" for kind, text in told if not any(re.fullmatch(some, text) for some in SOMETIMES)},
        "lab": {key: value for key, value in lab.items() if key not in hidden},
    }


def anonymous(text):
    """The text without the names of node and pod."""
    text = re.sub(r"^(Successfully assigned \S+ to) .*", r"\1 NODE", text)
    return re.sub(r"\([0-9a-f-]{36}\)", "(UID)", text)
