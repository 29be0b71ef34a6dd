"""Starts a Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager."""

import base64
import json
import os
import secrets
import ssl
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from processes import Processes

CONTROLLERS = (
    "namespace",
    "serviceaccount",
    "serviceaccount-token",
    "garbagecollector",
    "resourcequota",
    "persistentvolumeclaim-protection-controller",  # without it claims, and so their namespaces, would never be deleted
    "deployment",  # these four make the pods of workloads, into which labs are put
    "replicaset",
    "statefulset",
    "daemonset",
    "endpointslice-controller",  # the names of labs
)
ON_LOOPBACK = {
    "service_cluster_ip_range": "10.0.0.0/24",
    "endpoint_reconciler_type": "none",  # a loopback address is not accepted as an endpoint
}


class ControlPlane:
    """A control plane. In a `with` statement it is ready inside it, and removed at its end; its owner may also give it a
    folder and start it among other processes.

    `server` and `manager` are further options of kube-apiserver and kube-controller-manager.
    """

    def __init__(
        self,
        programs: Path,
        *,
        address: str = "",
        etcd_address: str = "",
        server: dict[str, object] | None = None,
        manager: dict[str, object] | None = None,
    ) -> None:
        self.programs = programs
        self.address = address or own_address()
        self.etcd_address = etcd_address or self.address
        self.server, self.manager = server or {}, manager or {}
        self.token = secrets.token_hex(16)

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="control-plane-")
        try:
            self.start(Path(self.folder.name), Processes(Path(self.folder.name)))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.processes.kill()
        self.folder.cleanup()

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"https://{self.address}:6443"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with all permissions."""
        return self.home / "kubeconfig"

    @property
    def certificate(self) -> Path:
        """The self-signed certificate that the API server makes for its addresses."""
        return self.home / "certificates/apiserver.crt"

    def start(self, home: Path, processes: Processes) -> None:
        """Start the programs with their files in this folder, and wait until they are ready."""
        self.home, self.processes = home, processes
        etcd = f"http://{self.etcd_address}:2379"
        self._write("tokens.csv", f"{self.token},admin,admin,system:masters\n")
        self._write("accounts.key", private_key())
        processes.launch(
            self.programs / "etcd",
            data_dir=self.home / "etcd",
            listen_client_urls=etcd,
            advertise_client_urls=etcd,
            listen_peer_urls=f"http://{self.etcd_address}:2380",
            unsafe_no_fsync="true",
        )
        processes.launch(
            self.programs / "kube-apiserver",
            etcd_servers=etcd,
            bind_address=self.address,
            advertise_address=self.address,
            secure_port=6443,
            cert_dir=self.home / "certificates",
            token_auth_file=self.home / "tokens.csv",
            authorization_mode="RBAC",
            service_account_issuer="https://kubernetes.default.svc",
            service_account_signing_key_file=self.home / "accounts.key",
            service_account_key_file=self.home / "accounts.key",
            allow_privileged="true",  # required by most network plugins, so usual on real clusters
            **(ON_LOOPBACK | self.server),
        )
        processes.wait("kube-apiserver", self.certificate.exists)
        self._write("kubeconfig", self._configuration())
        processes.wait("kube-apiserver", lambda: self.get("/readyz"))
        processes.launch(
            self.programs / "kube-controller-manager",
            kubeconfig=self.kubeconfig,
            service_account_private_key_file=self.home / "accounts.key",
            leader_elect="false",
            secure_port=0,
            # The tests create namespaces by the dozen, unlike ordinary sites.
            kube_api_qps=1000,
            kube_api_burst=1000,
            concurrent_namespace_syncs=20,
            **({"controllers": ",".join(CONTROLLERS), "root_ca_file": self.certificate} | self.manager),
        )
        # When a pod is admitted, its service account exists, so the controllers are running.
        processes.wait(
            "kube-controller-manager", lambda: self.get("/api/v1/namespaces/default/serviceaccounts/default")
        )

    def get(self, path: str) -> bool:
        """True if the API server answers a request for the path with 200."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        try:
            trust = ssl.create_default_context(cafile=self.certificate)
            with urllib.request.urlopen(request, timeout=5, context=trust) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _configuration(self) -> str:
        """A kubeconfig. JSON is YAML."""
        cluster = {"server": self.url, "certificate-authority": str(self.certificate)}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "control-plane", "cluster": cluster}],
                "users": [{"name": "admin", "user": {"token": self.token}}],
                "contexts": [{"name": "control-plane", "context": {"cluster": "control-plane", "user": "admin"}}],
                "current-context": "control-plane",
            },
            indent=2,
        )

    def _write(self, name: str, text: str) -> None:
        (self.home / name).write_text(text)  # in a folder that only its owner can access


def own_address(number: int = 0) -> str:
    """An address for this process alone: Linux answers on all of 127/8, so parallel runs never need the same port. A
    process has one for each `number` from 0 to 2; the pods of one-machine clusters have those from 127.64 on."""
    process = os.getpid()
    return f"127.{16 * (1 + number) + (process >> 16) % 16}.{process >> 8 & 255}.{process & 255}"


def private_key() -> str:
    """A private key on P-256 in PEM (RFC 5915), for tokens of service accounts; any number is a valid key."""
    der = bytes.fromhex("30310201010420") + secrets.token_bytes(32) + bytes.fromhex("a00a06082a8648ce3d030107")
    lines = ["-----BEGIN EC PRIVATE KEY-----", base64.b64encode(der).decode(), "-----END EC PRIVATE KEY-----"]
    return "\n".join([*lines, ""])
