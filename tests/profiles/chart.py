"""KubeSpawner's settings as the chart of Zero to JupyterHub 4 makes them of its values."""

from __future__ import annotations

import copy
from typing import Any

# The chart's names of settings. Those of `storage` and `extraFiles` are below.
NAMES = {
    "start_timeout": "startTimeout",
    "extra_labels": "extraLabels",
    "node_selector": "nodeSelector",
    "init_containers": "initContainers",
    "environment": "extraEnv",
    "profile_list": "profileList",
    "default_url": "defaultUrl",
    "cmd": "cmd",
}
DEFAULTS = {
    "cmd": "jupyterhub-singleuser",
    "extraLabels": {"hub.jupyter.org/network-access-hub": "true"},
    "image": {"name": "quay.io/jupyterhub/k8s-singleuser-sample", "tag": "4.3.2"},
    "memory": {"guarantee": "1G"},
    "startTimeout": 300,
}


def traits(values: dict[str, Any]) -> dict[str, Any]:
    """The settings of a site with these values."""
    site = ordered(DEFAULTS | values["singleuser"])
    made = {trait: site[name] for trait, name in NAMES.items() if name in site}
    made["cmd"] = made["cmd"] if isinstance(made["cmd"], list) else [made["cmd"]]
    made["image"] = f"{site['image']['name']}:{site['image']['tag']}"
    for kind in ("limit", "guarantee"):
        for short, name in (("mem", "memory"), ("cpu", "cpu")):
            if kind in site.get(name, {}):
                made[f"{short}_{kind}"] = site[name][kind]
    made["tolerations"] = [
        {"key": key, "operator": "Equal", "value": "user", "effect": "NoSchedule"}
        for key in ("hub.jupyter.org/dedicated", "hub.jupyter.org_dedicated")
    ]
    made |= storage(site)
    return made | values.get("hub", {}).get("config", {}).get("KubeSpawner", {})


def storage(site: dict[str, Any]) -> dict[str, Any]:
    """The volumes and their mounts."""
    given = site.get("storage", {})
    home = {"mountPath": "/home/jovyan", "name": "home"}
    claim = {"claimName": "{pvc_name}"}
    if given.get("type") == "static":
        claim = {"claimName": given["static"]["pvcName"]}
        home["subPath"] = given["static"]["subPath"]
    volumes, mounts = [{"name": "home", "persistentVolumeClaim": claim}], [home]
    if files := site.get("extraFiles"):
        items = [{"key": key, "path": key, "mode": file.get("mode", 0o644)} for key, file in files.items()]
        volumes.append({"name": "files", "secret": {"secretName": "singleuser", "items": items}})
        mounts += [{"name": "files", "mountPath": file["mountPath"], "subPath": key} for key, file in files.items()]
    volumes += given.get("extraVolumes", {}).values()
    mounts += given.get("extraVolumeMounts", {}).values()
    return {"volumes": volumes, "volume_mounts": mounts}


def ordered(value: Any) -> Any:
    """The value as Helm writes it: with the keys of maps in their order."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value)}
    return [ordered(item) for item in value] if isinstance(value, list) else value


def seen_by(profiles: list[dict[str, Any]], groups: list[str]) -> list[dict[str, Any]]:
    """The profiles as sites filter them by `allowed_groups`."""

    def allowed(entry: dict[str, Any]) -> bool:
        return "allowed_groups" not in entry or bool(set(entry["allowed_groups"]) & set(groups))

    seen = [profile for profile in copy.deepcopy(profiles) if allowed(profile)]
    for option in [option for profile in seen for option in profile.get("profile_options", {}).values()]:
        choices = option.get("choices", {})
        option["choices"] = {name: choice for name, choice in choices.items() if allowed(choice)}
    return seen
