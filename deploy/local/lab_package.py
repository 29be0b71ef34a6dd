"""What labs of this machine find without being configured: the package `wasmspawner` of this clone, with its entry
points, its command and its extension of the Jupyter server, and a kernel that runs in a pod of its own."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from toolchain import ROOT

SOURCE = ROOT / "sdk/python"


def write(folder: Path, path: str) -> dict[str, str]:
    """Write the folder. Returns the variables with which a lab's processes find it; `path` is the `PATH` that the command
    is added to."""
    package, jupyter, programs = folder / "python", folder / "jupyter", folder / "bin"
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    _describe(package, project)
    _commands(programs, project)
    _kernel(jupyter / "kernels/own-pod")
    return {
        "PATH": f"{programs}:{path}",
        "PYTHONPATH": f"{SOURCE / 'src'}:{package}",
        "JUPYTER_PATH": str(jupyter),
        # The folder in which Jupyter finds `jupyter_server_config.d`, which an installer would copy.
        "JUPYTER_CONFIG_PATH": str(SOURCE),
    }


def _describe(package: Path, project: dict) -> None:
    """What an installer would write about the package. Python finds entry points there, and the package itself in the
    clone, which the virtual environment knows nothing of because clones share it."""
    about = package / f"{project['name']}-{project['version']}.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (about / "METADATA").write_text(metadata)
    lines = []
    for group, names in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in names.items()), ""]
    (about / "entry_points.txt").write_text("\n".join(lines))


def _commands(folder: Path, project: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, function in project["scripts"].items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec python -m {function.partition(":")[0]} "$@"\n')
        script.chmod(0o755)


def _kernel(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    spec = {
        "argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python (pod of its own)",
        "language": "python",
        "metadata": {"kernel_provisioner": {"provisioner_name": "wasmspawner-provisioner", "config": {}}},
    }
    (folder / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n")
