"""Starts a Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager."""

import base64
import ctypes
import json
import os
import secrets
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

START = 90.0  # seconds; an idle machine needs four
PR_SET_PDEATHSIG = 1
CONTROLLERS = (
    "namespace",
    "serviceaccount",
    "serviceaccount-token",
    "garbagecollector",
    "resourcequota",
    "persistentvolumeclaim-protection-controller",  # without it claims, and so their namespaces, would never be deleted
)
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class NotReady(Exception):
    """A program ended or was not ready in time. The message contains the end of its log."""


class ControlPlane:
    """A control plane for a `with` statement: ready inside it, and removed at its end."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.children: dict[str, subprocess.Popen] = {}
        self.address = own_address()
        self.token = secrets.token_hex(16)

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="control-plane-")
        self.home = Path(self.folder.name)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        # Killed, because none of them has data to keep.
        for child in self.children.values():
            child.kill()
        for child in self.children.values():
            child.wait()
        self.folder.cleanup()

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"https://{self.address}:6443"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with all permissions."""
        return self.home / "kubeconfig"

    def _start(self) -> None:
        etcd = f"http://{self.address}:2379"
        self._write("tokens.csv", f"{self.token},admin,admin,system:masters\n")
        self._write("accounts.key", private_key())
        self._launch(
            "etcd",
            data_dir=self.home / "etcd",
            listen_client_urls=etcd,
            advertise_client_urls=etcd,
            listen_peer_urls=f"http://{self.address}:2380",
            unsafe_no_fsync="true",
        )
        self._launch(
            "kube-apiserver",
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
            service_cluster_ip_range="10.0.0.0/24",
            allow_privileged="true",  # required by most network plugins, so usual on real clusters
            endpoint_reconciler_type="none",  # a loopback address is not accepted as an endpoint
        )
        # The server creates a self-signed certificate for its address.
        certificate = self.home / "certificates/apiserver.crt"
        self._wait("kube-apiserver", certificate.exists)
        self._write("kubeconfig", self._configuration(certificate))
        self._wait("kube-apiserver", lambda: self._get("/readyz", certificate))
        self._launch(
            "kube-controller-manager",
            kubeconfig=self.kubeconfig,
            controllers=",".join(CONTROLLERS),
            service_account_private_key_file=self.home / "accounts.key",
            leader_elect="false",
            secure_port=0,
            # The tests create namespaces by the dozen, unlike ordinary sites.
            kube_api_qps=1000,
            kube_api_burst=1000,
            concurrent_namespace_syncs=20,
        )
        # When a pod is admitted, its service account exists, so the controllers are running.
        self._wait(
            "kube-controller-manager",
            lambda: self._get("/api/v1/namespaces/default/serviceaccounts/default", certificate),
        )

    def _launch(self, name: str, **options: object) -> None:
        arguments = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
        with open(self._log(name), "wb") as log:
            self.children[name] = subprocess.Popen(
                [str(self.programs / name), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )

    def _wait(self, name: str, ready) -> None:
        give_up = time.monotonic() + START
        while not ready():
            for known, child in self.children.items():
                if child.poll() is not None:
                    raise NotReady(f"{known} ended with {child.returncode}; {self._end_of_log(known)}")
            if time.monotonic() > give_up:
                raise NotReady(f"{name} was not ready within {START:.0f} s; {self._end_of_log(name)}")
            time.sleep(0.05)

    def _get(self, path: str, certificate: Path) -> bool:
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        try:
            trust = ssl.create_default_context(cafile=certificate)
            with urllib.request.urlopen(request, timeout=5, context=trust) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _configuration(self, certificate: Path) -> str:
        """A kubeconfig. JSON is YAML."""
        cluster = {"server": self.url, "certificate-authority": str(certificate)}
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

    def _log(self, name: str) -> Path:
        return self.home / f"{name}.log"

    def _end_of_log(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").splitlines()[-15:]
        return "its log ends:\n" + "\n".join(f"    {line}" for line in lines)


def own_address() -> str:
    """An address for this process alone: Linux answers on all of 127/8, so parallel runs never need the same port."""
    process = os.getpid()
    return f"127.{16 + (process >> 16) % 32}.{process >> 8 & 255}.{process & 255}"


def end_with_parent() -> None:
    """Runs in the child: the kernel kills it when this program ends for any reason."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def private_key() -> str:
    """A private key on P-256 in PEM (RFC 5915), for tokens of service accounts; any number is a valid key."""
    der = bytes.fromhex("30310201010420") + secrets.token_bytes(32) + bytes.fromhex("a00a06082a8648ce3d030107")
    lines = ["-----BEGIN EC PRIVATE KEY-----", base64.b64encode(der).decode(), "-----END EC PRIVATE KEY-----"]
    return "\n".join([*lines, ""])
