"""A container registry on this machine: Debian's docker-registry, with or without TLS and a password."""

import datetime
import hashlib
import ipaddress
import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from world import ROOT, eventually, free_port

import toolchain

sys.path.insert(0, str(ROOT / "tests/node"))

import debian

USER, PASSWORD = "puller", "right-password"
# `htpasswd -Bbn` of the two.
LOGIN = "puller:$2y$05$3GGjVD16xqO.2E/XyZ8H0uxK104q1SisFjeGxKk5EATJzg6SRqZz2"


def registry_or_skip(folder: Path, **options) -> "LocalRegistry":
    """A registry; the test is skipped where none can be had."""
    try:
        return LocalRegistry(folder, **options)
    except toolchain.Missing as missing:
        pytest.skip(f"skipped: a registry is needed; {missing}")


@contextmanager
def away(registry: "LocalRegistry"):
    """The time in which the registry does not run."""
    registry.stop()
    try:
        yield
    finally:
        registry.start()


@contextmanager
def taken_over_registry(handler: type[BaseHTTPRequestHandler]):
    """The time in which the handler answers as a registry; yields its address. A handler that is silent waits for
    `server.ended`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.ended, server.daemon_threads = threading.Event(), True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.ended.set()
        server.shutdown()


class LocalRegistry:
    """The registry as a process. For a `with` statement."""

    def __init__(self, folder: Path, *, guarded: bool = False) -> None:
        self.folder, self.guarded = folder, guarded
        self.program = debian.registry()
        self.address = f"127.0.0.1:{free_port()}"
        self.authority = folder / "ca.pem"
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "LocalRegistry":
        self.folder.mkdir(exist_ok=True)
        http = {"addr": self.address, "secret": "one-process-alone"}
        config = {
            "version": 0.1,
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(self.folder / "images")}, "delete": {"enabled": True}},
            "http": http,
        }
        if self.guarded:
            (self.folder / "htpasswd").write_text(LOGIN + "\n")
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(self.folder / "htpasswd")}}
            key = self._certificate()
            http["tls"] = {"certificate": str(self.authority), "key": str(key)}
        (self.folder / "registry.json").write_text(json.dumps(config))  # JSON is YAML
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, on the same images as before."""
        with open(self.folder / "registry.log", "ab") as log:
            command = [self.program, "serve", self.folder / "registry.json"]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(self._answers, what="the registry's first answer")

    def stop(self) -> None:
        """End it; the images stay."""
        self.process.kill()
        self.process.wait()

    def push(self, layout: Path, repository: str, tag: str) -> str:
        """Push the one image or artifact of an OCI layout. Returns the reference with its digest."""
        entry = json.loads((layout / "index.json").read_text())["manifests"][0]
        manifest = self.blob(layout, entry["digest"])
        parsed = json.loads(manifest)
        for part in [parsed["config"], *parsed["layers"]]:
            place = self._ask("POST", f"/v2/{repository}/blobs/uploads/").headers["Location"]
            content = self.blob(layout, part["digest"])
            self._ask("PUT", place, params={"digest": part["digest"]}, data=content)
        self.push_manifest(repository, tag, manifest, entry["mediaType"])
        return f"{self.address}/{repository}@{entry['digest']}"

    def push_manifest(self, repository: str, tag: str, manifest: bytes, media_type: str) -> None:
        """Push a manifest alone."""
        headers = {"Content-Type": media_type}
        self._ask("PUT", f"/v2/{repository}/manifests/{tag}", data=manifest, headers=headers)

    def push_image(self, repository: str, tag: str, content: str) -> str:
        """Push an image whose only content is this text. Returns its digest."""
        config = json.dumps(
            {"architecture": "amd64", "os": "linux", "config": {"Labels": {"content": content}}}
        ).encode()
        described = {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": f"sha256:{hashlib.sha256(config).hexdigest()}",
            "size": len(config),
        }
        place = self._ask("POST", f"/v2/{repository}/blobs/uploads/").headers["Location"]
        self._ask("PUT", place, params={"digest": described["digest"]}, data=config)
        media_type = "application/vnd.oci.image.manifest.v1+json"
        manifest = {"schemaVersion": 2, "mediaType": media_type, "config": described, "layers": []}
        encoded = json.dumps(manifest).encode()
        self.push_manifest(repository, tag, encoded, media_type)
        return f"sha256:{hashlib.sha256(encoded).hexdigest()}"

    def read(self, path: str) -> bytes:
        """What the registry has at this path below `/v2/`, whatever its kind."""
        kinds = ["application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"]
        return self._ask("GET", f"/v2/{path}", headers={"Accept": ", ".join(kinds)}).content

    @staticmethod
    def blob(layout: Path, digest: str) -> bytes:
        """A part of an OCI layout."""
        return (layout / "blobs" / digest.replace(":", "/")).read_bytes()

    def _ask(self, method: str, path: str, **options) -> requests.Response:
        url = path if "://" in path else self._url + path
        answer = requests.request(method, url, timeout=30, **self._access, **options)
        answer.raise_for_status()
        return answer

    @property
    def _url(self) -> str:
        return f"{'https' if self.guarded else 'http'}://{self.address}"

    @property
    def _access(self) -> dict:
        return {"auth": (USER, PASSWORD), "verify": str(self.authority)} if self.guarded else {}

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "registry.log").read_text()
        try:
            return requests.get(f"{self._url}/v2/", timeout=5, **self._access).status_code == 200
        except requests.RequestException:
            return False

    def _certificate(self) -> Path:
        """Make a certificate for the address, which is its own authority. Returns the file of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a registry of the tests")])
        now = datetime.datetime.now(datetime.UTC)
        address = x509.IPAddress(ipaddress.ip_address(self.address.split(":")[0]))
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        file = self.folder / "registry.key"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return file
