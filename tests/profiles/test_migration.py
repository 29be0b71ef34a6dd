"""`wasmspawner migrate` on the values files of its own tests: labs are those that KubeSpawner makes of the same files."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import Any

import chart
import oracle
import policy
import pytest
import yaml

import toolchain

CASES = toolchain.ROOT / "host/migration/cases"
# What the report lists as not carried over.
LEFT_OUT = {"static-homes": {"mounts": {"/bucket"}, "env": {"FROM_MAP"}}, "profiles": {}}
FIELDS = ("image", "args", "resources", "node_selector", "mounts", "working_dir", "pull", "init", "env")


def submissions(profiles: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The default, and every profile with each of its choices."""
    asked = [{}]
    for profile in profiles:
        chosen = {"profile": profile.get("slug") or oracle.slug(profile["display_name"])}
        asked.append(chosen)
        for name, option in profile.get("profile_options", {}).items():
            asked += [chosen | {name: choice} for choice in option["choices"]]
            if option.get("unlisted_choice", {}).get("enabled"):
                asked.append(chosen | {f"{name}--unlisted-choice": "site/typed:1"})
    return asked


def of_kubespawner(traits: dict[str, Any], options: dict[str, str]) -> dict[str, Any] | None:
    """The lab that KubeSpawner makes; none if it refuses."""
    spawner = oracle.spawner(traits, "ada")
    spawner.user_options = options
    try:
        asyncio.run(spawner.load_user_options())
    except (ValueError, KeyError):
        return None
    pod = asyncio.run(oracle._manifest(spawner))["spec"]
    container = pod["containers"][0]
    sources = {volume["name"]: source(volume) for volume in pod["volumes"]}

    def mounts(of: dict[str, Any]) -> dict[str, Any]:
        return {
            one["mountPath"]: (sources[one["name"]], one.get("subPath"), bool(one.get("readOnly")))
            for one in of.get("volumeMounts") or []
        }

    limits, requests = (container["resources"].get(kind) or {} for kind in ("limits", "requests"))
    return {
        "image": container["image"],
        "args": container.get("args") or [],
        "resources": (limits.get("memory"), requests.get("memory"), limits.get("nvidia.com/gpu")),
        "node_selector": pod.get("nodeSelector") or {},
        "mounts": mounts(container),
        "working_dir": container.get("workingDir"),
        "pull": container.get("imagePullPolicy") or "IfNotPresent",
        "init": [(one["name"], one["image"], one["command"], mounts(one)) for one in pod.get("initContainers") or []],
        "env": {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]},
    }


def source(volume: dict[str, Any]) -> tuple[str, ...]:
    """The source of a volume, as far as two sides can be compared."""
    for kind, name in (("persistentVolumeClaim", "claimName"), ("secret", "secretName"), ("csi", "driver")):
        if kind in volume:
            return kind, volume[kind][name]
    return ("emptyDir", (volume["emptyDir"] or {}).get("medium") or "")


def of_policy(lab: dict[str, Any]) -> dict[str, Any]:
    """The lab that the policy makes with the converted configuration."""

    def text(value: str) -> str:
        return value.replace("{escaped_username}", "ada").replace("{pvc_name}", "claim-ada")

    def asked_source(volume: dict[str, Any]) -> tuple[str, ...]:
        match volume["source"]:
            case {"claim": claim}:
                return "persistentVolumeClaim", text(claim["claim_name"])
            case {"secret": secret}:
                return "secret", secret["name"]
            case {"empty_dir": empty}:
                return "emptyDir", "Memory" if empty["memory"] else ""
        raise ValueError(volume)

    sources = {volume["name"]: asked_source(volume) for volume in lab["volumes"]}

    def mounts(of: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            one["path"]: (
                sources[one["volume"]],
                text(one["sub_path"]) if "sub_path" in one else None,
                one["read_only"],
            )
            for one in of
        }

    resources = lab["resources"]
    gpu = dict(resources.get("extended", [])).get("nvidia.com/gpu")
    containers = lab.get("pod_patch", {}).get("spec", {}).get("containers", [])
    patch = next((one for one in containers if one["name"] == "notebook"), {})
    values = {one["name"]: one["value"] for one in lab["env"]}
    return {
        "image": lab["image"]["reference"],
        "args": lab["args"],
        "resources": (resources.get("memory_limit_bytes"), resources.get("memory_request_bytes"), gpu and str(gpu)),
        "node_selector": {one["name"]: one["value"] for one in lab["node_selector"]},
        "mounts": mounts(lab["mounts"]),
        "working_dir": lab.get("working_dir"),
        "pull": patch.get("imagePullPolicy", "IfNotPresent"),
        "init": [(one["name"], one["image"], one["command"], mounts(one["mounts"])) for one in lab["init_containers"]],
        "env": {
            name: value.get("literal", {"secretKeyRef": value.get("secret_ref")}) for name, value in values.items()
        },
    }


@pytest.mark.parametrize("case", LEFT_OUT)
def test_labs_of_a_converted_site_are_those_of_kubespawner(case, tmp_path):
    file = CASES / f"{case}.yaml"
    command = [os.environ["WASMSPAWNER"], "migrate", "zero-to-jupyterhub", "-f", file, "--output", tmp_path / "out"]
    run = subprocess.run(command, text=True, capture_output=True)
    assert run.returncode == 3, run.stderr
    config = yaml.safe_load((tmp_path / "out/wasmspawner.yaml").read_text())["policies"][0]["config"]
    values = yaml.safe_load(file.read_text())
    traits = chart.traits(values.get("jupyterhub", values))
    # Settings of a wrong name or of another place, which the report lists.
    traits.pop("enable_user_namespaces", None)
    profiles = traits.pop("profile_list", [])
    compared = 0
    for groups in ([], ["gpu"], ["org:team"]):
        asked = submissions(profiles)
        question = {"config": config, "user": "ada", "groups": groups, "submissions": asked}
        (answer,) = policy.native([question])
        assert "problems" not in answer
        seen = chart.seen_by(profiles, groups)
        for options, found in zip(asked, answer["answers"], strict=True):
            expected = of_kubespawner(traits | ({"profile_list": seen} if profiles else {}), options)
            if expected is None:
                assert "errors" in found, f"{groups} {options}"
                continue
            lab = of_policy(found["lab"])
            # The variables of KubeSpawner itself are left out.
            expected["env"] = {name: value for name, value in expected["env"].items() if name in lab["env"]}
            for field in FIELDS:
                left_out = LEFT_OUT[case].get(field, set())
                if left_out:
                    expected[field] = {name: value for name, value in expected[field].items() if name not in left_out}
                assert lab[field] == expected[field], f"{field} of {groups} {options}"
            compared += 1
    assert compared >= 3
