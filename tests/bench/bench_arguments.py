"""The command line of a benchmark that runs the service."""

import argparse
import sys
from pathlib import Path

import toolchain


def arguments(about: str, number: str, default: int, meaning: str) -> argparse.Namespace:
    """`--program`, which must exist, and a number of this name."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(number, type=int, default=default, help=meaning)
    parser.add_argument("--program", type=Path, default=toolchain.target_dir() / "release/wasmspawner-under-test")
    options = parser.parse_args()
    if not options.program.exists():
        sys.exit(f"{options.program} does not exist; `cargo bench --locked --workspace --bench images` builds it")
    return options
