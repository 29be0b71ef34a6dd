"""The example site of `make run`: its images, sizes and policies, as a configuration of the service."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import lab_package

from toolchain import policy

# All images are the same JupyterLab, because the machine has only one.
IMAGES = [
    {
        "name": "minimal",
        "label": "Minimal",
        "description": "Python and JupyterLab, nothing else",
        "reference": "quay.io/jupyter/minimal-notebook:python-3.13",
    },
    {
        "name": "scipy",
        "label": "Scientific Python",
        "description": "NumPy, SciPy and pandas on top",
        "reference": "quay.io/jupyter/scipy-notebook:python-3.13",
    },
]
SIZES = [
    {"name": "small", "label": "Small", "cpu": "500m", "memory": "1Gi"},
    {"name": "medium", "label": "Medium", "cpu": 1, "memory": "2Gi"},
    {"name": "large", "label": "Large", "cpu": 2, "memory": "4Gi"},
]
OPTIONS = [
    {
        "name": "reset_user_env",
        "label": "Reset my environment",
        "help": "Moves your own Python packages and settings aside, for a lab that no longer starts",
        "env": {"RESET_USER_ENV": "T"},
    },
    {"name": "debug", "label": "Verbose logs", "env": {"DEBUG": "T"}},
]


def service_config(
    *,
    state: Path,
    venv: Path,
    port: int,
    health_port: int,
    cluster_port: int,
    runtime: str,
    keep_labs: bool,
    hub_port: int,
    service_token_file: Path,
) -> dict[str, Any]:
    """The configuration of the service on this machine. Without a Hub, `hub_port` is 0."""
    homes = state / "homes"
    hub_api = f"http://127.0.0.1:{hub_port}/hub/api"
    package = lab_package.write(state / "lab", search_path(venv))
    config = {
        "http": {"listen": f"127.0.0.1:{port}", "health_listen": f"127.0.0.1:{health_port}"},
        "auth": {
            "modes": ["static"],
            "static": {"tokens_file": str(state / "tokens.yaml")},
            # Labs run as the user who called `make`; the objects in the cluster never have uid 0.
            "identities": {"default": {"uid": os.getuid() or 1000, "gid": os.getgid() or 1000}},
        },
        "embedded": {
            "listen": f"127.0.0.1:{cluster_port}",
            "runtime": runtime,
            "images": [jupyterlab(venv, package), children(package)],
            "keep_labs": keep_labs,
        },
        "lab": {
            "env": {"HOME": "/home/{username}"},
            "working_dir": "/home/{username}",
            "termination_grace_period_seconds": 10,
        },
        "policies": [
            {
                "name": "default",
                "path": str(policy("policy-default")),
                "grants": {"host-path": [str(homes)]},
                "config": {
                    "images": IMAGES,
                    "sizes": SIZES,
                    "options": OPTIONS,
                    # Homes are folders of this machine, one for each user, and stay when labs are stopped.
                    "volumes": [{"name": "home", "host_path": str(homes)}],
                    "mounts": [{"volume": "home", "path": "/home/{username}", "sub_path": "{username}"}],
                },
            },
            {
                "name": "suspended",
                "path": str(policy("policy-deny-group")),
                "config": {"deny": ["suspended"], "message": "Your account is suspended. Please ask for help."},
            },
        ],
        "state_dir": str(state),
    }
    if hub_port:
        # The command line and the Hub present tokens of the file. Users present a token of JupyterHub: a lab is started
        # with the API token that the Hub made for it.
        config["auth"] |= {"modes": ["static", "jupyterhub"], "jupyterhub": {"api_url": hub_api}}
        # How the service itself calls this Hub: for users' groups and for `wasmspawner labs forgotten`.
        config["hub"] = {
            "api_url": hub_api,
            "token_file": str(service_token_file),
            "forgotten": {"min_age": "1m"},
        }
    return config


def jupyterlab(venv: Path, package: dict[str, str]) -> dict[str, Any]:
    """The command for images: every image is the JupyterLab of the virtual environment, listening on the pod's
    address."""
    # Jupyter refuses to run as root without this option. All processes run as the user who called `make`.
    root = ["--allow-root"] if os.geteuid() == 0 else []
    return {
        "match": "*",
        "containers": ["notebook"],
        "command": [str(venv / "jupyterhub-singleuser")],
        "args": ["--ip={pod_ip}", *root],
        "env": package,
        "working_dir": "{home}",
        "pod_command": "ignored",
    }


def children(package: dict[str, str]) -> dict[str, Any]:
    """The pods of kernels and Dask pools: the service's own commands, with the programs and packages of their lab."""
    return {
        "match": "*",
        "containers": ["kernel", "dask-scheduler", "dask-worker"],
        "env": {name: package[name] for name in ("PATH", "PYTHONPATH")},
        "working_dir": "{home}",
    }


def search_path(venv: Path) -> str:
    """The `PATH` of all pods."""
    return f"{venv}:{os.environ.get('PATH', os.defpath)}"


def write(config: dict[str, Any], file: Path) -> Path:
    """Write the configuration to a file; JSON is YAML."""
    file.write_text(json.dumps(config, indent=2) + "\n")
    return file
