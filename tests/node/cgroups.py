"""A control group in every hierarchy of this machine: all processes in it can be found and killed."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PATIENCE = 20.0  # seconds until killed processes are gone


class ControlGroup:
    """A control group at the top of each hierarchy."""

    def __init__(self, name: str) -> None:
        self.name = name
        hierarchies = _hierarchies()
        self.folders = [hierarchy / name for hierarchy in hierarchies]
        # One hierarchy is enough to find the programs. With version 2 a group has either processes or groups in it.
        self.programs = self.folders[0] / "programs"

    def make(self) -> None:
        """Create it. The kubelet expects the group below which it makes its own."""
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
            for setting in ("cpuset.cpus", "cpuset.mems"):
                if (folder.parent / setting).exists():
                    (folder / setting).write_text((folder.parent / setting).read_text())
            if (controllers := folder / "cgroup.controllers").exists():
                for controller in controllers.read_text().split():
                    with suppress(OSError):
                        (folder / "cgroup.subtree_control").write_text(f"+{controller}")
        self.programs.mkdir(exist_ok=True)

    def enter(self) -> None:
        """Move the calling process into it, whose descendants then are in it, too."""
        (self.programs / "cgroup.procs").write_text(str(os.getpid()))

    def kill(self) -> None:
        """Kill all processes in it and below it, except the calling one, until there are none."""
        give_up = time.monotonic() + PATIENCE
        while processes := self.processes():
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            if time.monotonic() > give_up:
                raise TimeoutError(f"processes in the control group {self.name} cannot be killed: {sorted(processes)}")
            time.sleep(0.05)

    def processes(self) -> set[int]:
        """The processes in it and below it, except the calling one and those that have ended."""
        found = set()
        for group in self._groups():
            with suppress(OSError):
                found.update(map(int, (group / "cgroup.procs").read_text().split()))
        return {process for process in found - {os.getpid()} if _lives(process)}

    def remove(self) -> None:
        """Remove it from all hierarchies. No process may be in it."""
        give_up = time.monotonic() + PATIENCE
        while remaining := sorted(self._groups(), reverse=True):  # inner groups first
            for group in remaining:
                with suppress(OSError):  # the kernel needs a moment after the end of a group's last process
                    group.rmdir()
            if time.monotonic() > give_up:
                raise TimeoutError(f"the control group {remaining[-1]} cannot be removed")
            time.sleep(0.02)

    def _groups(self) -> Iterator[Path]:
        for folder in self.folders:
            for path, _, _ in os.walk(folder):
                yield Path(path)


def _hierarchies() -> list[Path]:
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    found = {Path(fields[1]).resolve() for fields in mounts if fields[2] in ("cgroup", "cgroup2")}
    # The one with processes alone comes first.
    return sorted(found, key=lambda path: (path.name != "pids", path))


def _lives(process: int) -> bool:
    """False for a process that has ended and only waits for its parent."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
