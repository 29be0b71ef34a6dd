"""containerd, with everything it keeps in the cluster's folder."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import network
from node_programs import Programs
from registry import Registry
from slot import Slot

from processes import Processes

CONFIGURATION = """\
version = 3
root = "{home}/containerd"
state = "{home}/containerd-state"
disabled_plugins = ["io.containerd.nri.v1.nri"]

[grpc]
  address = "{socket}"

[ttrpc]
  address = "{socket}.ttrpc"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{home}/registries"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{home}/network"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false

[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"
"""


@dataclass
class Runtime:
    """The container runtime of the node."""

    slot: Slot
    programs: Programs
    processes: Processes

    @property
    def socket(self) -> Path:
        """Where containerd listens."""
        return self.slot.home / "containerd.sock"

    def launch(self, pause: str) -> None:
        """Start it. `pause` is the image of every pod's first container."""
        home = self.slot.home
        network.write_configuration(home / "network", home / "addresses")
        for address in (Registry.address, Registry.protected):
            # Without such a file, containerd would try HTTPS.
            hosts = home / "registries" / address / "hosts.toml"
            hosts.parent.mkdir(parents=True)
            hosts.write_text(f'server = "http://{address}"\n')
        file = home / "containerd.toml"
        places = {"plugins": self.programs.network_plugins, "runc": self.programs.runc / "runc", "pause": pause}
        file.write_text(CONFIGURATION.format(home=home, socket=self.socket, **places))
        self.processes.launch(self.programs.containerd / "containerd", "--config", file)

    def wait(self) -> None:
        """Wait until it answers."""
        self.processes.wait("containerd", self.socket.is_socket)

    def remove(self, image: str) -> None:
        """Remove an image from the node, as its garbage collection does."""
        command = [self.programs.containerd / "ctr", "--address", self.socket, "--namespace", "k8s.io", "images", "rm"]
        subprocess.run([*map(str, command), "--sync", image], check=True, capture_output=True)
