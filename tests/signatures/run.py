#!/usr/bin/env python3
"""Signs policies with cosign itself, in a real registry, and has the service verify them.

    run.py test PROGRAM [ARGUMENT..]   run the tests with `wasmspawner`; the arguments are those of pytest
    run.py tables PROGRAM              write tests/tables/signatures.json anew, which the tests in Rust use
    run.py cached                      end with 0 if cosign has been built, and else with 1

cosign is built outside the clone, once for each version; that takes five minutes, and Go 1.26 or later.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "node"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy/local"))

import debian

import toolchain

HERE = Path(__file__).resolve().parent
VERSION = "3.1.3"


def cosign() -> Path:
    """The program."""

    def install(home: Path) -> None:
        if not shutil.which("go"):
            raise toolchain.Missing(
                "missing: Go 1.26 or later, with which cosign is built; install it from https://go.dev"
            )
        home.mkdir(exist_ok=True)
        environment = os.environ | {"GOBIN": str(home), "GOFLAGS": "-mod=mod"}
        with toolchain.step(f"Building cosign {VERSION} (five minutes)"):
            package = f"github.com/sigstore/cosign/v3/cmd/cosign@v{VERSION}"
            subprocess.run(["go", "install", package], env=environment, cwd=home, check=True)

    return toolchain.cached("cosign", VERSION.encode(), install) / "cosign"


def environment(program: str) -> dict[str, str]:
    """What the tests need. A registry is installed, too."""
    debian.registry()
    programs = {"WASMSPAWNER": program, "COSIGN": str(cosign())}
    return os.environ | programs | {"PYTHONDONTWRITEBYTECODE": "1"}


def main() -> int:
    """Run what the arguments ask for."""
    match sys.argv[1:]:
        case ["cached"]:
            built = (toolchain.cache_folder("cosign", VERSION.encode()) / "complete").exists()
            if not built:
                print("skipped: signatures of cosign itself; `make signatures` builds it")
            return 0 if built else 1
        case ["test", program, *arguments]:
            command = [sys.executable, "-m", "pytest", "-q", str(HERE), *arguments]
        case ["tables", program]:
            command = [sys.executable, str(HERE / "tables.py")]
            os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent / "e2e")])
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    try:
        return subprocess.call(command, env=environment(program))
    except (toolchain.Missing, subprocess.CalledProcessError) as error:
        print(f"skipped: signatures of cosign itself; {error}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
