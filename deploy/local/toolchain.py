"""Prerequisites of a run: tools, a virtual environment, the built programs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCAL = Path(__file__).resolve().parent
GUEST_TARGET = "wasm32-wasip2"
POLICIES = ("policy-default", "policy-deny-group", "policy-rubin")


class Missing(Exception):
    """Tools that the user has to install; the message has one line for each."""


@contextmanager
def step(what: str):
    """Print what is being done, and how long it took."""
    print(f"==> {what}", flush=True)
    begun = time.monotonic()
    yield
    if (took := time.monotonic() - begun) > 2:
        print(f"    done in {took:.0f} s", flush=True)


def run(*command: str | Path, **options) -> None:
    """Run a command in the root folder of the clone, and end this program if it fails."""
    if (code := subprocess.call([str(part) for part in command], cwd=ROOT, **options)) != 0:
        raise SystemExit(f"error: {' '.join(str(part) for part in command)} ended with {code}")


def check_tools() -> None:
    """Raise `Missing` with a line for each missing tool."""
    missing = []
    if sys.version_info < (3, 11):
        missing.append(f"Python 3.11 or later: this is {sys.version.split()[0]}; name another with `make PYTHON=...`")
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        missing.append("Python's venv module: Debian and Ubuntu have it in the package python3-venv")
    if not shutil.which("cargo"):
        missing.append("Rust: install it from https://rustup.rs (cargo is not on the PATH)")
    if not any(shutil.which(compiler) for compiler in ("cc", "gcc", "clang")):
        missing.append("a C compiler: Debian and Ubuntu have it in the package build-essential")
    if missing:
        raise Missing("\n".join(f"missing: {line}" for line in missing))


def add_guest_target() -> None:
    """Install the compile target of the policies, if rustup is available."""
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], cwd=ROOT, capture_output=True, text=True)
    if sysroot.returncode == 0 and (Path(sysroot.stdout.strip()) / "lib/rustlib" / GUEST_TARGET).is_dir():
        return
    if not shutil.which("rustup"):
        raise Missing(f"missing: Rust's target {GUEST_TARGET}: rustup would add it, but rustup is not on the PATH")
    with step(f"Adding Rust's target {GUEST_TARGET}"):
        run("rustup", "target", "add", GUEST_TARGET)


def build() -> Path:
    """Build the service and its policies. Returns the folder with the program."""
    with step("Building the service (the first time takes minutes)"):
        # Build the whole workspace, as the tests do: with the same features nothing is built twice.
        run("cargo", "build", "--locked", "--workspace", "--bin", "wasmspawner")
    with step("Building the policies"):
        packages = [argument for policy in POLICIES for argument in ("-p", policy)]
        run("cargo", "build", "--locked", "--profile", "guest", "--target", GUEST_TARGET, *packages)
    return target_dir() / "debug"


def target_dir() -> Path:
    """The folder in which cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


def policy(name: str, profile: str = "guest") -> Path:
    """The component of a policy of this repository, such as `policy-default`."""
    return target_dir() / GUEST_TARGET / profile / f"{name.replace('-', '_')}.wasm"


def environment(*, tests: bool = False, hub: str = "") -> Path:
    """A virtual environment with the pinned requirements, outside the clone. Returns its `bin` folder.

    `hub` selects another release of JupyterHub than the pinned one. The environment is named after a hash of the
    requirements, so that clones share it and changed pins give a new one.
    """
    files = [LOCAL / "constraints.txt", LOCAL / "requirements.txt"]
    if tests:
        files.append(LOCAL / "requirements-test.txt")
    pins = {file.name: file.read_text() for file in files}
    if hub:
        pins = {name: re.sub(r"(?m)^jupyterhub==.*$", f"jupyterhub=={hub}", text) for name, text in pins.items()}

    def install(home: Path) -> None:
        with step(f"Installing JupyterHub and JupyterLab in {home}"):
            venv.create(home, with_pip=True, clear=True)
            for name, text in pins.items():
                (home / name).write_text(text)
            constraints, *requirements = (home / name for name in pins)
            pip = [home / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q"]
            run(*pip, "-c", constraints, *(argument for file in requirements for argument in ("-r", file)))

    return cached("venv", (sys.version + "".join(pins.values())).encode(), install) / "bin"


def cache_folder(name: str, pins: bytes) -> Path:
    """The folder outside the clone for what these pins give. It holds the file `complete` once it is filled."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wasmspawner"
    return cache / f"{name}-{hashlib.sha256(pins).hexdigest()[:12]}"


def cached(name: str, pins: bytes, fill: Callable[[Path], None]) -> Path:
    """A folder outside the clone that `fill` fills once for these pins, even if several processes request it at
    once."""
    home = cache_folder(name, pins)
    complete = home / "complete"
    if not complete.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with open(home.with_name(f"{home.name}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                fill(home)
                complete.touch()
    return home
