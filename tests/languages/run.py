#!/usr/bin/env python3
"""Tests of the SDKs in Python and JavaScript, of the policies that are written with them, and of new projects.

    run.py test PROGRAM   run the tests; PROGRAM is `wasmspawner`, with which components are tried
    run.py cached         end with 0 if the compilers of both languages have been installed, and else with 1

The compilers are installed outside the clone, once for each version. Needs Python 3.11 and Node 20 with npm.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy/local"))

import stack
import toolchain

ROOT = Path(__file__).resolve().parents[2]
PYTHON_SDK = ROOT / "sdk/python-policy"
JAVASCRIPT_SDK = ROOT / "sdk/javascript"
TOOLS = ["pytest==9.2.0", "mypy==1.20.2"]


def python_pins() -> list[str]:
    """What pip installs."""
    project = tomllib.loads((PYTHON_SDK / "pyproject.toml").read_text())["project"]
    return [requirement.replace(" ", "") for requirement in project["dependencies"]] + TOOLS


def python_key() -> bytes:
    """What the environment depends on."""
    return (sys.version + "".join(python_pins())).encode()


def python_compiler() -> Path:
    """The `bin` folder of an environment with componentize-py."""

    def install(home: Path) -> None:
        venv.create(home, with_pip=True, clear=True)
        pip = [home / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q"]
        subprocess.run([*pip, *python_pins()], check=True)

    return toolchain.cached("policy-python", python_key(), install) / "bin"


def javascript_compiler() -> Path:
    """The `node_modules` of the JavaScript SDK."""

    def install(home: Path) -> None:
        home.mkdir(exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(JAVASCRIPT_SDK / name, home)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=home, check=True)

    return toolchain.cached("policy-javascript", javascript_pins(), install) / "node_modules"


def javascript_pins() -> bytes:
    """What npm installs."""
    return (JAVASCRIPT_SDK / "package-lock.json").read_bytes()


def cached() -> bool:
    """Whether both compilers are there."""
    folders = {
        "Python": toolchain.cache_folder("policy-python", python_key()),
        "JavaScript": toolchain.cache_folder("policy-javascript", javascript_pins()),
    }
    missing = [name for name, folder in folders.items() if not (folder / "complete").exists()]
    if missing:
        print(f"skipped: policies in {' and '.join(missing)}; `make languages` installs the compilers")
    return not missing


def link(place: Path, target: Path) -> None:
    """Make `place` a link to `target`, unless npm has installed something there."""
    if place.is_symlink():
        place.unlink()
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(target)


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> None:
    """Run a command, which says itself what is wrong."""
    print(f"==> {' '.join(map(str, command))}  ({folder.relative_to(ROOT) if folder != ROOT else '.'})", flush=True)
    subprocess.run(command, cwd=folder, env=os.environ | environment, check=True)


def test_python(program: Path) -> None:
    """The package, the policies and a new project in Python."""
    bin_folder = python_compiler()
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    sdk = {"PATH": path, "PYTHONPATH": str(PYTHON_SDK / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    run(bin_folder / "pytest", "-q", "-p", "no:cacheprovider", folder=PYTHON_SDK, WASMSPAWNER=str(program), **sdk)
    run(bin_folder / "mypy", "--cache-dir", os.devnull, "src", folder=PYTHON_SDK, **sdk)
    for policy in sorted((ROOT / "plugins/python").iterdir()):
        run(bin_folder / "pytest", "-q", "-p", "no:cacheprovider", folder=policy, **sdk)
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary) / "mine"
        subprocess.run([program, "policy", "new", project, "--language", "python"], check=True)
        vendored = sdk | {"PYTHONPATH": str(project / "vendor/wasmspawner-policy/src")}
        subprocess.run([bin_folder / "pytest", "-q"], cwd=project, env=os.environ | vendored, check=True)
        try_project(program, project, vendored)


def link_javascript() -> None:
    """Let the package and the policies in JavaScript find what npm has installed."""
    link(JAVASCRIPT_SDK / "node_modules", javascript_compiler())
    link(ROOT / "plugins/javascript/node_modules/wasmspawner-policy", JAVASCRIPT_SDK)
    link(ROOT / "plugins/javascript/node_modules/.bin", JAVASCRIPT_SDK / "node_modules/.bin")


def test_javascript(program: Path) -> None:
    """The package, the policies and a new project in JavaScript."""
    link_javascript()
    run("npm", "test", folder=JAVASCRIPT_SDK, WASMSPAWNER=str(program))
    run("npm", "run", "types", folder=JAVASCRIPT_SDK)
    for policy in sorted((ROOT / "plugins/javascript").glob("*/package.json")):
        run("npm", "test", folder=policy.parent)
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary) / "mine"
        subprocess.run([program, "policy", "new", project, "--language", "javascript"], check=True)
        npm = ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund"]
        subprocess.run(npm, cwd=project, check=True)
        subprocess.run(["npm", "test"], cwd=project, check=True)
        try_project(program, project, {})


def try_project(program: Path, project: Path, environment: dict[str, str]) -> None:
    """Build the policy of a new project, and compare its answers with its cases."""
    subprocess.run([program, "policy", "build", project], env=os.environ | environment, check=True)
    component, config = project / f"{project.name}.wasm", project / "config.yaml"
    subprocess.run([program, "policy", "test", component, project / "cases", "--config", config], check=True)
    try_changes(program, project, environment)
    try_form(program, project)


def try_changes(program: Path, project: Path, environment: dict[str, str]) -> None:
    """Change the policy while `policy dev` looks at it: with a mistake, and back."""
    source = next(project.glob("policy.*"))
    good = source.read_text()
    command = [program, "policy", "dev", project]
    with subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True) as dev:
        try:
            for text, expected in (
                (None, "cases, 0 failed"),
                (f"{good}\n(((\n", "failed: "),
                (good, "cases, 0 failed"),
            ):
                if text is not None:
                    source.write_text(text)
                seen = []
                for line in dev.stdout:
                    seen.append(line)
                    if line.startswith("waiting for a change"):
                        break
                print("".join(seen), end="", flush=True)
                assert any(expected in line for line in seen), (expected, seen)
        finally:
            dev.kill()


def try_form(program: Path, project: Path) -> None:
    """Find the policy's sizes in the spawn form of the example site."""
    port = stack.free_port()
    state = project.parent / "state"
    variables = {"POLICY": str(project), "SPAWNER_PORT": str(port), "STATE_DIR": str(state), "RUNTIME": "simulated"}
    command = [sys.executable, ROOT / "deploy/local/run.py", "serve"]
    with subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE, text=True) as serve:
        try:
            said = []
            for line in serve.stdout:
                said.append(line)
                if line.startswith("Ctrl-C ends everything"):
                    break
            assert serve.poll() is None, "".join(said)
            minted = [program, "token", "--state-dir", state, "--user", "ada"]
            token = subprocess.check_output(minted, text=True).strip()
            url = f"http://127.0.0.1:{port}/spawner/v1/spawn-form/ada"
            request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
            form = urllib.request.urlopen(request, timeout=30).read().decode()
            assert 'value="small"' in form, form
            assert "1 CPU, 2 GiB" in form, form
            print(f"the spawn form of {project.name} shows its sizes", flush=True)
        finally:
            serve.send_signal(signal.SIGINT)
            serve.stdout.read()  # until it has ended


def main() -> None:
    """Run what the arguments ask for."""
    match sys.argv[1:]:
        case ["cached"]:
            sys.exit(0 if cached() else 1)
        case ["test", program]:
            test_python(Path(program).resolve())
            if shutil.which("npm"):
                test_javascript(Path(program).resolve())
            else:
                print("skipped: policies in JavaScript; there is no npm")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
