"""The network of a cluster: a namespace of its own with a link to this machine, and no way out."""

import json
import subprocess
from pathlib import Path

from slot import Slot

PODS = "10.244.0.0/16"
SERVICES = "10.96.0.0/16"
DNS = "10.96.0.10"
REGISTRY = "10.97.0.1"  # on the namespace's loopback: its pods reach it, and this machine's other users do not


def make(slot: Slot) -> None:
    """Make the namespace. This machine reaches the node's address; the namespace reaches nothing but this machine."""
    _run("ip", "netns", "add", slot.name)
    _run("ip", "link", "add", slot.outer_link, "type", "veth", "peer", "name", "eth0", "netns", slot.name)
    _run("ip", "address", "add", f"{slot.gateway}/30", "dev", slot.outer_link)
    _run("ip", "link", "set", slot.outer_link, "up")
    inside = ["ip", "-n", slot.name]
    _run(*inside, "link", "set", "lo", "up")
    _run(*inside, "address", "add", f"{REGISTRY}/32", "dev", "lo")
    _run(*inside, "address", "add", f"{slot.address}/30", "dev", "eth0")
    _run(*inside, "link", "set", "eth0", "up")
    # The kubelet needs a default route. This one has no gateway, so nothing leaves by it.
    _run(*inside, "route", "add", "default", "dev", "eth0")
    _run(*enter(slot), "sysctl", "-qw", "net.ipv4.ip_forward=1")


def enter(slot: Slot) -> list[str]:
    """The start of a command that runs in the namespace. `ip netns exec` would hide the control groups."""
    return ["nsenter", f"--net={slot.namespace}", "--"]


def write_configuration(folder: Path, addresses: Path) -> None:
    """Write the configuration of the network plugins, which keep the used addresses in a folder."""
    # A link for each pod. On a bridge, the answer of one pod to another would bypass the rules of Services.
    link = {
        "type": "ptp",
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": PODS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(addresses),
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    folder.mkdir()
    network = {"cniVersion": "1.0.0", "name": "pods", "plugins": [link, ports]}
    (folder / "10-pods.conflist").write_text(json.dumps(network, indent=2))


def _run(*command: str) -> None:
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"error: {' '.join(command)} ended with {ended.returncode}: {ended.stdout.strip()}")
