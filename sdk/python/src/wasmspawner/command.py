"""The command `wasmspawner`, for use in labs and in their images."""

import argparse
import sys
from collections.abc import Sequence

from . import dask_command, kernelspec
from .command_error import CommandError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # argparse would take options of a kernel's command for its own.
    separator = given.index("--") if "--" in given else len(given)
    options = _parser().parse_args(given[:separator])
    if given[separator:] and not getattr(options, "takes_command", False):
        print("wasmspawner: only `kernelspec add` takes a COMMAND after `--`", file=sys.stderr)
        return 2
    options.command = given[separator + 1 :]
    try:
        options.run(options)
    except CommandError as error:
        print(f"wasmspawner: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="wasmspawner", description="Tools for labs that wasmspawner has started.")
    topics = parser.add_subparsers(required=True, metavar="TOPIC")
    kernelspec.add_topic(topics)
    dask_command.add_topic(topics)
    return parser


if __name__ == "__main__":
    sys.exit(main())
