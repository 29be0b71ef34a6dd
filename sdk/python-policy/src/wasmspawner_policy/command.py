"""The command `python -m wasmspawner_policy`."""

import argparse
import sys
from pathlib import Path

from .build import BuildError, build


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="wasmspawner_policy", description="Make policies for wasmspawner")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build", help="make the component of a policy")
    one.add_argument("folder", type=Path, help="the folder of the policy")
    one.add_argument("-o", "--output", type=Path, help="the component [default: FOLDER/NAME-OF-FOLDER.wasm]")
    one.add_argument("--module", default="policy", help="the module with the policy's class [default: policy]")
    given = parser.parse_args(arguments)
    folder = given.folder.resolve()
    output = given.output or folder / f"{folder.name}.wasm"
    try:
        build(folder, output, given.module)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB")
    return 0
