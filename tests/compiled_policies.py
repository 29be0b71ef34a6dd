"""Machine code of policies that the services of all tests share, so that each policy is compiled once and not for each
service. `tests/src/compiled_policies.rs` does the same for the tests in Rust, in the same folder."""

import errno
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import stack
import toolchain


def shared() -> Path:
    """The folder with what has been compiled."""
    return toolchain.target_dir() / "tmp/compiled-policies"


def lend(state: Path) -> None:
    """Give a service that has compiled nothing yet what others have."""
    if not (state / "compiled-policies").exists():
        _link_all(shared(), state / "compiled-policies")


def keep(state: Path) -> None:
    """Keep what the service has compiled."""
    _link_all(state / "compiled-policies", shared())


def start_service(settings: stack.Settings) -> stack.Process:
    """Start the service of the one-machine setup, and wait until it is ready."""
    lend(settings.state)
    service = stack.start_service(settings)
    keep(settings.state)
    return service


def _link_all(source: Path, target: Path) -> None:
    """Link the files, which services never change but replace. Others may do the same at the same time."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in source.glob("*.cwasm"):
        with suppress(FileExistsError, FileNotFoundError):
            try:
                os.link(file, target / file.name)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                _copy(file, target)


def _copy(file: Path, target: Path) -> None:
    """Copy the file so that nobody sees a part of it."""
    with tempfile.NamedTemporaryFile(dir=target, delete=False) as copy:
        shutil.copyfile(file, copy.name)
    os.replace(copy.name, target / file.name)
