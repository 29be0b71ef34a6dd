#!/usr/bin/env python3
"""Compares the default policy with KubeSpawner, on generated profile lists.

    run.py test PROGRAM POLICY [ARGUMENT..]   run the tests with `wasmspawner` and the policy's component; the arguments
                                              are those of pytest
    run.py cached                             end with 0 if KubeSpawner has been installed, and else with 1

KubeSpawner is installed outside the clone, once for each version. `PROFILE_SEED=17` repeats the lists of a run,
`PROFILE_LISTS=1000` makes more of them, and `PROFILE_ANSWERS` names the program that asks the policy natively.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy/local"))

import toolchain

HERE = Path(__file__).resolve().parent
# The rest is pinned in constraints.txt, as for all of this repository.
REQUIREMENTS = [
    "jupyterhub-kubespawner==7.1.0",
    "jupyterhub==6.1.1",
    "kubernetes_asyncio==36.1.0",
    "pytest==9.2.0",
    "python-slugify==9.2.0",
    "text-unidecode==1.3",
]


def pins() -> bytes:
    """What the environment depends on."""
    constraints = (toolchain.LOCAL / "constraints.txt").read_text()
    return (sys.version + constraints + "".join(REQUIREMENTS)).encode()


def kubespawner() -> Path:
    """The `bin` folder of an environment with KubeSpawner."""

    def install(home: Path) -> None:
        venv.create(home, with_pip=True, clear=True)
        constraints = toolchain.LOCAL / "constraints.txt"
        pip = [home / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q"]
        subprocess.run([*pip, "-c", constraints, *REQUIREMENTS], check=True)

    return toolchain.cached("kubespawner", pins(), install) / "bin"


def test(program: str, policy: str, arguments: list[str]) -> int:
    """Run the tests; the exit code is pytest's, or 0 where KubeSpawner cannot be had."""
    try:
        programs = kubespawner()
    except subprocess.CalledProcessError as error:
        print(
            f"skipped: profiles as KubeSpawner reads them; it is not installed, and pip failed with {error.returncode}"
        )
        return 0
    environment = os.environ | {"WASMSPAWNER": program, "POLICY": policy, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.call([programs / "python", "-m", "pytest", "-q", "-s", HERE, *arguments], env=environment)


def main() -> None:
    """Run what the arguments ask for."""
    match sys.argv[1:]:
        case ["cached"]:
            sys.exit(0 if (toolchain.cache_folder("kubespawner", pins()) / "complete").exists() else 1)
        case ["test", program, policy, *arguments]:
            sys.exit(test(str(Path(program).resolve()), str(Path(policy).resolve()), arguments))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
