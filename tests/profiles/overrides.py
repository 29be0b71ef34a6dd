"""Random values of `kubespawner_override`, as far as the default policy supports its keys."""

from __future__ import annotations

from random import Random
from typing import Any

TEXTS = [
    "T",
    "",
    "a b",
    "Größe 日本",
    "{username}",
    "home of {username}!",
    "{{}} {{a}}",
    "$(HOME)",
    "x-",
    'say "no"',
    "-{username}-",
    "{pvc_name}",
]
IMAGES = ["quay.io/jupyter/scipy-notebook:2026-10-06", "registry.example.org:5000/team/lab@sha256:" + 64 * "a", "lab"]
MEMORY = ["1G", "512M", "1.5G", "0.3G", "4096K", "2T", "0.0001G", 1073741824, 1.5e9, 0, "0G", None]
CPUS = [1, 0.5, 2.25, 0.05, 0.0005, 8, 0, None, 1e-3]
TOLERATIONS = [
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "pool", "operator": "Equal", "value": "gpu", "effect": "NoExecute", "tolerationSeconds": 60},
    {"key": "pool", "value": "gpu"},
    {"key": "spot", "operator": "Exists", "effect": "PreferNoSchedule"},
    {"operator": "Exists"},
]
VOLUMES = [
    {"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}},
    {"name": "home", "nfs": {"server": "nfs.example.org", "path": "/export/{username}"}},
    {"name": "shared", "persistentVolumeClaim": {"claimName": "shared", "readOnly": True}},
    {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
    {"name": "scratch", "emptyDir": {}},
    {"name": "notes", "configMap": {"name": "notes", "items": [{"key": "a", "path": "b/a"}], "optional": True}},
    {"name": "key", "secret": {"secretName": "key-of-{username}", "defaultMode": 256}},
    {"name": "disk", "hostPath": {"path": "/mnt/{username}"}},
]
# Where a typed value may stand.
TYPED = ["image", "cmd", "args", "environment", "extra_labels", "extra_annotations", "node_selector", "default_url"]


def override(random: Random, *, site_command: bool, typed: bool = False) -> dict[str, Any]:
    """An override with some keys. `typed` is that of an `unlisted_choice`, which says where the typed value goes."""
    makers = {
        "image": lambda: random.choice(IMAGES),
        "environment": lambda: environment(random, typed),
        "extra_labels": lambda: labels(random, typed),
        "extra_annotations": lambda: labels(random, typed),
        "node_selector": lambda: some(random, {"pool": ["gpu", "cpu", None], "zone": ["a", "b", None]}),
        "tolerations": lambda: random.sample(TOLERATIONS, random.randint(0, 2)),
        "extra_resource_limits": lambda: some(
            random, {"nvidia.com/gpu": [1, 2, 0, "4", None], "example.org/x": [1, None]}
        ),
        "default_url": lambda: random.choice(["/lab", "/tree/{username}", ""]),
        "notebook_dir": lambda: random.choice(["/srv", "/home/{username}", ""]),
        "cmd": lambda: random.choice([["jupyterhub-singleuser"], "start.sh", ["sh", "-c", "exec ${{X}} {a}"]]),
        "args": lambda: random.choice([["--debug"], [], ["--a={b}", "c d"]]),
        "working_dir": lambda: random.choice(["/srv", "/home/{username}/work", None]),
        "start_timeout": lambda: random.choice([30, 900]),
        "port": lambda: random.choice([8787, 9999]),
    }
    if typed:
        # There a brace of the operator is written twice, which KubeSpawner and the policy undo.
        makers["cmd"] = lambda: ["sh", "-c", "exec ${{X}}"]
        makers["args"] = lambda: ["c d"]
    elif site_command:
        makers["cmd"] = lambda: random.choice([None, ["sh", "-c", "exec"]])
    keys = random.sample(sorted(makers), random.randint(0, 5))
    made = {key: makers[key]() for key in keys}
    resources(random, made)
    volumes(random, made)
    if typed:
        place(random, made)
    return dict(sorted(made.items()))


def environment(random: Random, typed: bool) -> dict[str, Any]:
    """Variables; `None` takes one away."""
    texts = [text for text in TEXTS if "{{" not in text] if typed else TEXTS
    made: dict[str, Any] = {}
    for name in random.sample(["A", "B", "C", "JUPYTERHUB_DEFAULT_URL"], random.randint(1, 3)):
        kind = random.random()
        if kind < 0.15:
            made[name] = None
        elif kind < 0.25 and name != "JUPYTERHUB_DEFAULT_URL":
            made[name] = {"valueFrom": {"secretKeyRef": {"name": "keys", "key": random.choice("kl")}}}
        else:
            made[name] = random.choice(texts)
    return made


def labels(random: Random, typed: bool) -> dict[str, Any]:
    """Labels or annotations."""
    braces = [] if typed else ["a{{b}}"]
    return some(random, {"team": ["a", "b", None], "of": ["{username}", "x-{username}", None, *braces]})


def some(random: Random, values: dict[str, list[Any]]) -> dict[str, Any]:
    """A part of these keys, each with one of its values."""
    keys = random.sample(sorted(values), random.randint(1, len(values)))
    return {key: random.choice(values[key]) for key in keys}


def resources(random: Random, made: dict[str, Any]) -> None:
    """Limits and guarantees; the policy refuses a guarantee above the limit of the same override."""
    for kind, amounts in (("cpu", CPUS), ("mem", MEMORY)):
        if random.random() < 0.4:
            made[f"{kind}_limit"] = random.choice(amounts)
        if random.random() < 0.4:
            given = made.get(f"{kind}_limit")
            made[f"{kind}_guarantee"] = random.choice([given, 0, None]) if given else random.choice(amounts)
    limits = made.get("extra_resource_limits")
    if limits and random.random() < 0.3:
        made["extra_resource_guarantees"] = dict(limits)


def volumes(random: Random, made: dict[str, Any]) -> None:
    """Volumes with their mounts, each list of which replaces the earlier one."""
    if random.random() < 0.25:
        chosen = {one["name"]: one for one in random.sample(VOLUMES, random.randint(0, 3))}
        made["volumes"] = list(chosen.values())
        made["volume_mounts"] = [
            {"name": name, "mountPath": f"/{name}/{{username}}"}
            | random.choice([{}, {"subPath": "{username}/x"}, {"readOnly": True}])
            for name in chosen
        ]


def place(random: Random, made: dict[str, Any]) -> None:
    """Put the typed value into the override."""
    for key in random.sample(TYPED, random.randint(1, 3)):
        match key:
            case "image":
                made[key] = random.choice(["{value}", "quay.io/{value}", "lab:{value}"])
            case "cmd":
                made[key] = ["run", "{value}", "--x={value}"]
            case "args":
                made[key] = ["--x={value}", "{value}"]
            case "default_url":
                made[key] = "/tree/{value}"
            case "node_selector":
                made[key] = made.get(key, {}) | {"kind": "{value}"}
            case _:
                made[key] = made.get(key, {}) | {"typed": random.choice(["{value}", "<{value}{value}>"])}
