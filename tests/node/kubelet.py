"""The kubelet, with everything it keeps in the cluster's folder."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import network
from node_programs import Programs
from slot import Slot

from processes import Processes

NODE = "node"


@dataclass
class Kubelet:
    """The kubelet of the only node. Its API accepts the API server alone, by a certificate."""

    slot: Slot
    programs: Programs
    processes: Processes

    @property
    def client_certificate(self) -> Path:
        """What the API server shows. It is self-signed, so it is also the authority."""
        return self.slot.home / "kubelet-client.crt"

    @property
    def client_key(self) -> Path:
        """The certificate's private key."""
        return self.slot.home / "kubelet-client.key"

    def make_certificate(self) -> None:
        """Make the certificate, which has to exist before the API server starts."""
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        names = ["-subj", "/CN=kube-apiserver", "-addext", "extendedKeyUsage=clientAuth", "-days", "30"]
        files = ["-out", str(self.client_certificate), "-keyout", str(self.client_key)]
        subprocess.run([*command, *names, *files], check=True, capture_output=True)

    def launch(self, kubeconfig: Path, socket: Path) -> None:
        """Start it."""
        home = self.slot.home
        file = home / "kubelet.json"
        file.write_text(json.dumps(self._configuration(socket), indent=2))
        self.processes.launch(
            self.programs.kubernetes / "kubelet",
            config=file,
            kubeconfig=kubeconfig,
            root_dir=home / "kubelet",
            cert_dir=home / "kubelet-certificates",
            hostname_override=NODE,
            node_ip=self.slot.address,
        )

    def _configuration(self, socket: Path) -> dict:
        home = self.slot.home
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.slot.address,
            "healthzBindAddress": "127.0.0.1",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.client_certificate)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.slot.name}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "resolvConf": "",
            "clusterDNS": [network.DNS],
            "clusterDomain": "cluster.local",
            "podLogsDir": str(home / "pod-logs"),
            "volumePluginDir": str(home / "volume-plugins"),
        }
