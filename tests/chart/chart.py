"""The chart, as it is rendered with values."""

from dataclasses import dataclass
from pathlib import Path

import yaml
from helm import HERE, Helm

DEPLOY = HERE.parents[1] / "deploy"
SOURCE = DEPLOY / "chart"
EXAMPLES = sorted((SOURCE / "examples").glob("*.yaml"))
OLDEST, NEWEST = "1.30.0", "1.36.0"
NAME = "wasmspawner"

# The least that the chart accepts, without the check before an upgrade: nothing in these tests runs a Job.
MINIMAL = {
    "upgradeCheck": {"enabled": False},
    "image": {"repository": "registry.example.org/wasmspawner"},
    "config": {
        "auth": {
            "modes": ["jupyterhub"],
            "jupyterhub": {"api_url": "http://hub:8081/hub/api"},
            "identities": {"default": {"uid": 1000, "gid": 100, "groups": [{"name": "users", "id": 100}]}},
        }
    },
}


@dataclass
class Chart:
    """A packed chart."""

    helm: Helm
    archive: Path
    folder: Path

    def render(
        self, *values: Path | dict, version: str = NEWEST, namespace: str = NAME, name: str = NAME
    ) -> list[dict]:
        """The objects that the values give. Raises `helm.Refused`."""
        files = [argument for part in values for argument in ("-f", self.file(part))]
        text = self.helm.run("template", name, self.archive, "-n", namespace, "--kube-version", version, *files)
        return [rendered for rendered in yaml.safe_load_all(text) if rendered]

    def file(self, values: Path | dict) -> Path:
        """A file with the values."""
        if isinstance(values, Path):
            return values
        path = self.folder / f"values-{len(list(self.folder.iterdir()))}.yaml"
        path.write_text(yaml.safe_dump(values))
        return path


def merged(*values: dict) -> dict:
    """The values, where those of later arguments win, as with Helm's `-f`."""
    result: dict = {}
    for part in values:
        for key, value in part.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else value
    return result


def one(objects: list[dict], kind: str, name: str = "") -> dict:
    """The only object of a kind, or the one with a name."""
    found = [each for each in objects if each["kind"] == kind and name in ("", each["metadata"]["name"])]
    assert len(found) == 1, f"{kind} {name}: {[each['metadata']['name'] for each in found]}"
    return found[0]


def configuration(objects: list[dict]) -> dict:
    """The service's configuration among the objects."""
    maps = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
    # That of the check before an upgrade is the same.
    (text,) = {data["wasmspawner.yaml"] for data in maps if "wasmspawner.yaml" in data}
    return yaml.safe_load(text)


def pod(objects: list[dict]) -> dict:
    """The specification of the service's pod."""
    return one(objects, "Deployment")["spec"]["template"]["spec"]
