"""A registry of images in the cluster: one port for everyone, and one that wants a password."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import debian
import network
from slot import Slot

from processes import Processes

OPEN_PORT, PROTECTED_PORT = 5000, 5001
USER, PASSWORD = "puller", "right-password"


@dataclass
class Registry:
    """Debian's docker-registry, once for each port, on the same images."""

    slot: Slot
    processes: Processes | None = None  # none, to push into a registry that runs

    address = f"{network.REGISTRY}:{OPEN_PORT}"
    protected = f"{network.REGISTRY}:{PROTECTED_PORT}"

    def launch(self) -> None:
        """Start both."""
        home = self.slot.home / "registry"
        home.mkdir()
        passwords = home / "htpasswd"
        passwords.write_text(subprocess.check_output(["htpasswd", "-Bbn", USER, PASSWORD], text=True))
        guard = {"htpasswd": {"realm": "test", "path": str(passwords)}}
        for name, address, auth in (("registry", self.address, None), ("registry-protected", self.protected, guard)):
            config = {
                "version": 0.1,
                "log": {"level": "warn", "accesslog": {"disabled": True}},
                "storage": {"filesystem": {"rootdirectory": str(home / "images")}},
                "http": {"addr": address, "secret": "one-process-alone"},
                **({"auth": auth} if auth else {}),
            }
            file = home / f"{name}.json"  # JSON is YAML
            file.write_text(json.dumps(config))
            self.processes.launch_command(name, [str(debian.registry()), "serve", str(file)])

    def answers(self) -> bool:
        """True once both ports accept connections."""
        listening = ["ss", "-Hltn", f"src {network.REGISTRY}"]
        open_ports = subprocess.run([*network.enter(self.slot), *listening], capture_output=True, text=True).stdout
        return self.address in open_ports and self.protected in open_ports

    def push(self, source: Path | str, name: str) -> str:
        """Push an OCI archive, or an OCI layout as skopeo names it (`folder` or `folder:tag`), as `name:tag`. Returns the
        image's whole name."""
        path = str(source)
        transport = "oci-archive" if Path(path.split(":")[0]).is_file() else "oci"
        copy = ["skopeo", "--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false"]
        image = f"{self.address}/{name}"
        command = [*network.enter(self.slot), *copy, f"{transport}:{path}", f"docker://{image}"]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ended.returncode != 0:
            raise SystemExit(f"error: {source} cannot be pushed as {image}: {ended.stdout.strip()}")
        return image
