"""A place for one cluster on this machine: a number, and everything that is named after it."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from cgroups import ControlGroup

HOME = Path("/var/lib/wasmspawner-node")
CONTAINER_LOGS = Path("/var/log/containers")  # the kubelet writes links into it, whatever its configuration says
SLOTS = 64


class Slot:
    """A number that no other running cluster has. The lock is given up by the kernel when its process ends, so that what
    a killed cluster has left can be told from one that runs."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = f"wasmspawner-node-{number}"
        self.home = HOME / str(number)
        self.group = ControlGroup(self.name)
        self.outer_link = f"wsnode{number}"  # this machine's end of the link into the namespace
        self.gateway = f"198.18.{number}.1"  # 198.18.0.0/15 is for tests (RFC 2544), so nobody has routes to it
        self.address = f"198.18.{number}.2"

    @classmethod
    def take(cls) -> "Slot":
        """Take the first free slot, after cleaning up after all clusters that were killed."""
        HOME.mkdir(mode=0o700, parents=True, exist_ok=True)
        taken = None
        for number in range(SLOTS):
            slot = cls(number)
            if taken and not slot.home.exists():
                continue
            if slot._lock():
                if slot.home.exists():
                    slot.clean()
                if taken is None:
                    taken = slot
                else:
                    slot._unlock()
        if taken is None:
            raise SystemExit(f"error: {SLOTS} test clusters are running on this machine; end some of them")
        taken.home.mkdir(mode=0o700)
        return taken

    def give_back(self) -> None:
        """Remove everything, and let others have the slot."""
        self.clean()
        self._unlock()

    def clean(self) -> None:
        """End and remove everything that belongs to the slot. Works after `kill -9` of all its processes, too."""
        self.group.kill()
        for mount in self.mounts():
            subprocess.run(["umount", "--lazy", mount], check=False)
        if Path(f"/sys/class/net/{self.outer_link}").exists():
            subprocess.run(["ip", "link", "delete", self.outer_link], check=False)
        if self.namespace.exists():
            subprocess.run(["ip", "netns", "delete", self.name], check=False)
        self.group.remove()
        for link in CONTAINER_LOGS.glob("*"):
            if link.is_symlink() and Path(os.readlink(link)).is_relative_to(self.home):
                link.unlink()
        # Last, because its existence says that there is something to clean.
        shutil.rmtree(self.home)

    @property
    def namespace(self) -> Path:
        """The network namespace."""
        return Path("/run/netns") / self.name

    def mounts(self) -> list[str]:
        """The mounts below the slot's folder, inner ones first."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
        return [point for point in reversed(points) if Path(point).is_relative_to(self.home)]

    def _lock(self) -> bool:
        self._file = open(HOME / f"{self.number}.lock", "w")  # noqa: SIM115 - held until the end
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            return False
        return True

    def _unlock(self) -> None:
        self._file.close()
