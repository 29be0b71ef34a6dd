"""Makes the component of a policy: writes the world with the hooks that it has, and runs componentize-py."""

import importlib
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from .policy import Policy, info, interfaces, strangers

CONTRACT = Path(__file__).parent / "policy.wit"
_APP = "wasmspawner_policy_app"


class BuildError(Exception):
    """Why there is no component, and what to do about it."""


def build(folder: Path, output: Path, module: str = "policy") -> None:
    """Makes the component of the policy in `folder`, whose class is in this module."""
    with _imported(folder, module) as loaded:
        policy = only_policy(loaded)
        hooks, name = interfaces(policy), policy.__name__
        if wrong := strangers(policy):
            raise BuildError("\n".join(wrong))
        information = info(policy, _project(folder))
    if not hooks:
        raise BuildError(f"{name} in {module}.py decides nothing; define a method such as quota or authorize")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        (work / "wit").mkdir()
        (work / "wit" / "policy.wit").write_text(CONTRACT.read_text())
        (work / "wit" / "world.wit").write_text(world(hooks))
        (work / f"{_APP}.py").write_text(
            "from wasmspawner_policy.component import exports\n"
            f"from {module} import {name}\n"
            f"globals().update(exports({name}, {information!r}))\n"
        )
        _componentize(work, folder, output)


def world(hooks: list[str]) -> str:
    """The world of a policy with these hooks, in WIT."""
    package = next(line for line in CONTRACT.read_text().splitlines() if line.startswith("package "))
    exported = "".join(f"  export {name};\n" for name in ["metadata", "config", "prepare", *hooks])
    return f"{package}\nworld site-policy {{\n  import host;\n{exported}}}\n"


def only_policy(module: ModuleType) -> type[Policy]:
    """The class of the policy in a module."""
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Policy) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        names = ", ".join(one.__name__ for one in found) or "none"
        raise BuildError(f"{module.__name__}.py must have exactly one class derived from Policy; it has {names}")
    return found[0]


def _project(folder: Path) -> dict[str, Any]:
    """The table `project` of the folder's `pyproject.toml`."""
    file = folder / "pyproject.toml"
    try:
        project: dict[str, Any] = tomllib.loads(file.read_text()).get("project", {}) if file.is_file() else {}
    except tomllib.TOMLDecodeError as error:
        raise BuildError(f"{file}: {error}") from None
    return project


@contextmanager
def _imported(folder: Path, module: str) -> Iterator[ModuleType]:
    """The module, imported here, where only its hooks are read."""
    if not (folder / f"{module}.py").is_file() and not (folder / module).is_dir():
        raise BuildError(f"{folder / module}.py is not there; name the module of the policy with --module")
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    sys.modules.pop(module, None)
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(module)
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == module:
                del sys.modules[name]


def _componentize(work: Path, folder: Path, output: Path) -> None:
    command = [sys.executable, "-c", "from componentize_py import script; script()", "--quiet"]
    command += ["-d", str(work / "wit"), "-w", "site-policy", "componentize", _APP, "-o", str(output)]
    for path in (work, folder, Path(__file__).parent.parent):
        command += ["-p", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        # Of a failure in the policy itself, the interpreter in the component tells first, and only then the tool.
        told = result.stderr.partition("Stack backtrace:")[0].strip()
        raise BuildError(f"componentize-py failed:\n{told}")
