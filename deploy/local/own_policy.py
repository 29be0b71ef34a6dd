"""A policy of one's own in the example site: `make run POLICY=my-policy`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

READ = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin) or {}, sys.stdout, default=str)"


@dataclass
class OwnPolicy:
    """A component, and the file with its configuration if there is one."""

    name: str
    component: Path
    config: Path | None

    @classmethod
    def find(cls, place: str) -> OwnPolicy:
        """The policy of this folder or file. Ends this program with what is missing."""
        path = Path(place).absolute()
        folder = path if path.is_dir() else path.parent
        components = sorted(folder.glob("*.wasm")) if path.is_dir() else [path]
        if not path.exists():
            raise SystemExit(
                f"error: POLICY is {place}, which does not exist; `wasmspawner policy new {place}` makes a policy"
            )
        if not components:
            raise SystemExit(
                f"error: POLICY is {place}, which has no component; `wasmspawner policy build {place}` makes it"
            )
        if len(components) > 1:
            names = ", ".join(component.name for component in components)
            raise SystemExit(f"error: POLICY is {place}, which has several components ({names}); name one of them")
        config = folder / "config.yaml"
        return cls(components[0].stem, components[0], config if config.is_file() else None)

    def add(self, site: dict, program: Path, python: Path) -> None:
        """Add the policy to a site, as the last one of its chain. If it has a form, that is shown, and the sizes of the example
        make room for its own."""
        policies = site["policies"]
        if self._has_form(program):
            default = next(policy for policy in policies if policy["name"] == "default")
            default["config"] = {
                key: value for key, value in default["config"].items() if key not in ("sizes", "options")
            }
        policies.append({"name": f"own-{self.name}", "path": str(self.component), "config": self._read(python)})

    def _has_form(self, program: Path) -> bool:
        inspected = subprocess.run(
            [program, "policy", "inspect", self.component, "--json"], capture_output=True, text=True
        )
        if inspected.returncode != 0:
            raise SystemExit(f"error: POLICY cannot be used: {inspected.stderr.strip().removeprefix('error: ')}")
        return "form" in json.loads(inspected.stdout)["exports"]

    def _read(self, python: Path) -> dict:
        """The configuration. YAML is read by the environment of JupyterHub, which has a parser."""
        if self.config is None:
            return {}
        text = self.config.read_text()
        read = subprocess.run([python, "-c", READ], input=text, capture_output=True, text=True)
        if read.returncode != 0:
            raise SystemExit(f"error: {self.config} is not YAML: {read.stderr.strip().splitlines()[-1]}")
        config = json.loads(read.stdout)
        if not isinstance(config, dict):
            raise SystemExit(f"error: {self.config} must have keys and values, as in `config` of a policy")
        return config
