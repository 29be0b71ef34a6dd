"""One form for labs, in which KubeSpawner's pods and the policy's answers can be compared."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Any

# Variables that both sides set from other settings of a profile.
SETTINGS = {"JUPYTERHUB_DEFAULT_URL", "JUPYTERHUB_ROOT_DIR"}
EFFECTS = {"no_schedule": "NoSchedule", "prefer_no_schedule": "PreferNoSchedule", "no_execute": "NoExecute"}


def of_manifest(pod: dict[str, Any], plain: dict[str, Any], spawner: Any, base: Any) -> dict[str, Any]:
    """The lab of KubeSpawner's pod. `plain` is the pod without the profile, whose own variables and labels are
    KubeSpawner's rather than the site's or the profile's."""
    container = pod["spec"]["containers"][0]
    own = set(_env(plain["spec"]["containers"][0])) - set(base.environment) - SETTINGS
    hub = own | {"CPU_LIMIT", "CPU_GUARANTEE", "MEM_LIMIT", "MEM_GUARANTEE"}
    limits, requests = (container["resources"].get(kind) or {} for kind in ("limits", "requests"))
    extended, guaranteed = ({name: int(of[name]) for name in of if "/" in name} for of in (limits, requests))
    labels, annotations = (
        {
            name: value
            for name, value in pod["metadata"][kind].items()
            if name in getattr(base, f"extra_{kind}") or name not in plain["metadata"][kind]
        }
        for kind in ("labels", "annotations")
    )
    return {
        "image": container["image"] if spawner.image != base.image else None,
        "command": [],
        "args": container.get("args") or [],
        "cpu_limit": _millis(limits.get("cpu")),
        "cpu_request": _millis(requests.get("cpu")),
        "memory_limit": limits.get("memory"),
        "memory_request": requests.get("memory"),
        "extended": extended,
        "guaranteed": guaranteed,
        "env": {name: value for name, value in _env(container).items() if name not in hub},
        "labels": labels,
        "annotations": annotations,
        "node_selector": pod["spec"].get("nodeSelector") or {},
        "tolerations": [_toleration(one) for one in pod["spec"].get("tolerations") or []],
        "volumes": [_volume(one) for one in pod["spec"].get("volumes") or []],
        "mounts": [_mount(one) for one in container.get("volumeMounts") or []],
        "working_dir": container.get("workingDir"),
        "start_timeout": spawner.start_timeout if spawner.start_timeout != base.start_timeout else None,
        "port": spawner.port if spawner.port != base.port else None,
    }


def of_policy(answer: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """The lab of an answer of the policy.

    The policy's own `command` replaces the image's entry point, which KubeSpawner has no setting for. Where it stays, only
    the words are compared.
    """
    lab = answer["lab"]
    command, args = lab.get("command") or [], lab.get("args") or []
    if command and command == config.get("command"):
        command, args = [], command + args
    resources = lab.get("resources", {})

    def pairs(key: str) -> dict[str, str]:
        return {pair["name"]: pair["value"] for pair in lab.get(key, [])}

    return {
        "image": lab.get("image", {}).get("reference"),
        "command": command,
        "args": args,
        "cpu_limit": resources.get("cpu_limit_millis"),
        "cpu_request": resources.get("cpu_request_millis"),
        "memory_limit": resources.get("memory_limit_bytes"),
        "memory_request": resources.get("memory_request_bytes"),
        "extended": dict(resources.get("extended", [])),
        "env": {one["name"]: _value(one["value"]) for one in lab.get("env", [])},
        "labels": pairs("labels"),
        "annotations": pairs("annotations"),
        "node_selector": pairs("node_selector"),
        "tolerations": [_asked_toleration(one) for one in lab.get("tolerations", [])],
        "volumes": [_asked_volume(one) for one in lab.get("volumes", [])],
        "mounts": [_asked_mount(one) for one in lab.get("mounts", [])],
        "working_dir": lab.get("working_dir"),
        "start_timeout": lab.get("time_limits", {}).get("spawn_seconds"),
        "port": answer["port"],
    }


def _env(container: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


def _value(value: dict[str, Any]) -> Any:
    match value:
        case {"literal": text}:
            return text
        case {"secret_ref": key}:
            return {"secretKeyRef": key}
        case {"field_ref": path}:
            return {"fieldRef": {"fieldPath": path}}
    raise ValueError(f"unknown value {value}")


def _millis(amount: float | None) -> int | None:
    """Thousandths of a CPU, rounded up as Kubernetes does."""
    return None if amount is None else int((Decimal(str(amount)) * 1000).to_integral_value(ROUND_CEILING))


def _toleration(one: dict[str, Any]) -> tuple[Any, ...]:
    """With the defaults of Kubernetes."""
    value, effect = one.get("value") or None, one.get("effect") or None
    return one.get("key"), one.get("operator") or "Equal", value, effect, one.get("tolerationSeconds")


def _asked_toleration(one: dict[str, Any]) -> tuple[Any, ...]:
    operator, effect = one["operator"].capitalize(), EFFECTS.get(one.get("effect", ""))
    return one.get("key"), operator, one.get("value") or None, effect, one.get("seconds")


def _volume(volume: dict[str, Any]) -> tuple[Any, ...]:
    (kind,) = volume.keys() - {"name"}
    source = volume[kind]
    match kind:
        case "persistentVolumeClaim":
            rest = (source["claimName"], source.get("readOnly", False))
        case "nfs":
            rest = (source["server"], source["path"], source.get("readOnly", False))
        case "configMap" | "secret":
            name = source["name" if kind == "configMap" else "secretName"]
            items = [(item["key"], item["path"]) for item in source.get("items") or []]
            rest = (name, source.get("optional", False), items, source.get("defaultMode"))
        case "emptyDir":
            rest = (source.get("medium") or None, _bytes(source.get("sizeLimit")))
        case _:
            rest = (source["path"],)
    return volume["name"], kind, *rest


def _bytes(quantity: str | None) -> int | None:
    """An amount such as `8Gi`."""
    units = {"Ki": 10, "Mi": 20, "Gi": 30}
    return None if quantity is None else int(quantity[:-2]) << units[quantity[-2:]]


def _asked_volume(volume: dict[str, Any]) -> tuple[Any, ...]:
    ((kind, source),) = volume["source"].items()
    match kind:
        case "claim":
            rest = ("persistentVolumeClaim", _service(source["claim_name"]), source["read_only"])
        case "nfs":
            rest = ("nfs", source["server"], _service(source["path"]), source["read_only"])
        case "config_map" | "secret":
            items = [tuple(item) for item in source.get("items", [])]
            name = "configMap" if kind == "config_map" else "secret"
            rest = (name, _service(source["name"]), source["optional"], items, source.get("mode"))
        case "empty_dir":
            rest = ("emptyDir", "Memory" if source["memory"] else None, source.get("size_limit_bytes"))
        case _:
            rest = ("hostPath", _service(source))
    return volume["name"], *rest


def _mount(mount: dict[str, Any]) -> tuple[Any, ...]:
    return mount["name"], mount["mountPath"], mount.get("subPath"), mount.get("readOnly", False)


def _asked_mount(mount: dict[str, Any]) -> tuple[Any, ...]:
    sub_path = mount.get("sub_path")
    return mount["volume"], mount["path"], sub_path and _service(sub_path), mount["read_only"]


def _service(template: str) -> str:
    """Names and paths of storage as the service expands them for `ada`, the only user of these tests who has any."""
    return template.replace("{username}", "ada").replace("{pvc_name}", "claim-ada")
