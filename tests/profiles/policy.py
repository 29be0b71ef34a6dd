"""What the default policy answers: natively, where a configuration costs nothing, and as the component that sites load."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from lists import Site

import toolchain

ROOT = toolchain.ROOT


def native(sites: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers of `plugins/default/examples/profile_answers`."""
    program = os.environ.get("PROFILE_ANSWERS") or toolchain.target_dir() / "debug/examples/profile_answers"
    run = subprocess.run([program], input=json.dumps(sites), text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def question(site: Site) -> dict[str, Any]:
    """What the native program is asked about a site."""
    submissions = [submission.given for submission in site.submissions]
    return {"config": site.config, "user": "ada", "submissions": submissions}


def component(*arguments: str | Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """`wasmspawner policy` with the component. What it compiles for each configuration is of no further use."""
    program, (hook, *rest) = os.environ["WASMSPAWNER"], arguments
    command = [program, "policy", hook, os.environ["POLICY"], *rest]
    return subprocess.run(command, text=True, capture_output=True, env=os.environ | {"XDG_CACHE_HOME": str(cache)})
