"""The programs of the test cluster: those of the control plane, and those of its node."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "control-plane"))

import programs  # noqa: E402
from go_module import GoModule  # noqa: E402

CONTAINERD = GoModule(
    "containerd",
    HERE / "containerd",
    {
        name: f"github.com/containerd/containerd/v2/cmd/{name}"
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
)
# Without the tag, every pod with the seccomp profile RuntimeDefault fails.
RUNC = GoModule("runc", HERE / "runc", {"runc": "github.com/opencontainers/runc"}, cgo=True, tags="seccomp")
NETWORK_PLUGINS = GoModule(
    "network-plugins",
    HERE / "network-plugins",
    {
        path.rsplit("/")[-1]: f"github.com/containernetworking/plugins/plugins/{path}"
        for path in ("ipam/host-local", "main/loopback", "main/ptp", "meta/portmap")
    },
)
COREDNS = GoModule("coredns", HERE / "coredns", {"coredns": "wasmspawner.example/coredns"})


@dataclass(frozen=True)
class Programs:
    """Folders with programs."""

    control_plane: Path
    kubernetes: Path
    containerd: Path
    runc: Path
    network_plugins: Path
    coredns: Path

    @classmethod
    def built(cls) -> "Programs":
        """All programs, built where they do not exist. Raises `toolchain.Missing` if that is not possible."""
        return cls(
            runc=RUNC.built(),
            network_plugins=NETWORK_PLUGINS.built(),
            containerd=CONTAINERD.built(),
            kubernetes=programs.NODE.built(),
            coredns=COREDNS.built(),
            control_plane=programs.folder(),
        )

    @staticmethod
    def missing() -> list[str]:
        """The names of what `built` would have to build, which takes many minutes."""
        modules = (RUNC, NETWORK_PLUGINS, CONTAINERD, programs.NODE, COREDNS)
        return [module.name for module in modules if not module.is_built()]

    @property
    def path(self) -> str:
        """A PATH on which all of them are found."""
        folders = [self.control_plane, self.kubernetes, self.containerd, self.runc, self.coredns]
        return os.pathsep.join([*map(str, folders), os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")])
