"""A registry, keys, and what cosign does with them."""

import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from processes import Processes

POLICY = Path(__file__).resolve().parents[1] / "guests/published-0.1.0/policy.wasm"
# Nothing is written into the public log of Sigstore.
PRIVATELY = ["--use-signing-config=false", "--tlog-upload=false", "--yes"]
TYPES = ["application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"]


class Registry:
    """A registry without TLS, until the `with` ends."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, Processes(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"

    def __enter__(self) -> "Registry":
        storage = {"filesystem": {"rootdirectory": str(self.folder / "artifacts")}}
        config = {"version": 0.1, "log": {"level": "error"}, "storage": storage}
        config["http"] = {"addr": self.address, "secret": "one-process-alone"}
        file = self.folder / "registry.json"
        file.write_text(json.dumps(config))
        self.processes.launch_command("registry", [os.environ["DOCKER_REGISTRY"], "serve", str(file)])
        self.processes.wait("registry", self._answers)
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.kill()

    def _answers(self) -> bool:
        try:
            return self.read("") is not None
        except urllib.error.URLError:
            return False

    def read(self, path: str) -> bytes:
        """What the registry has at this path."""
        request = urllib.request.Request(f"http://{self.address}/v2/{path}", headers={"Accept": ", ".join(TYPES)})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read()


def cosign(folder: Path, *arguments: object) -> str:
    """Run cosign, with keys that have no password."""
    command = [os.environ["COSIGN"], *map(str, arguments)]
    environment = os.environ | {"COSIGN_PASSWORD": ""}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, f"{command}: {ended.stderr}"
    return ended.stdout


def new_key(folder: Path, name: str, kind: str | None = None) -> None:
    """Make NAME.key and NAME.pub: those of cosign, or of this kind by openssl."""
    if kind is None:
        cosign(folder, "generate-key-pair", "--output-key-prefix", name)
        return
    algorithm, *options = kind.split()
    command = ["openssl", "genpkey", "-algorithm", algorithm, *options, "-out", f"{name}.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    cosign(folder, "import-key-pair", "--key", f"{name}.pem", "--output-key-prefix", name)


def push(folder: Path, registry: Registry, repository: str, file: Path = POLICY) -> str:
    """Store a policy in the registry. Returns its reference with the digest."""
    host = registry.address
    command = [
        os.environ["WASMSPAWNER"],
        "policy",
        "push",
        file,
        f"{host}/{repository}:1",
        "--plain-http",
        host,
        "--json",
    ]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    pushed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environment)
    return json.loads(pushed.stdout)["oci"]


def sign(folder: Path, artifact: str, key: str, *arguments: object) -> None:
    """Sign an artifact. `--new-bundle-format=false` is the form before cosign 3."""
    cosign(folder, "sign", "--key", f"{key}.key", "--allow-http-registry", *PRIVATELY, *arguments, artifact)


def attest(folder: Path, artifact: str, key: str) -> None:
    """Sign a statement about an artifact that is no signature of it."""
    statement = folder / "statement.json"
    statement.write_text(json.dumps({"tested": False, "with": "x" * 400_000}))
    options = ["--type", "https://example.org/tested", "--predicate", statement, "--allow-http-registry", *PRIVATELY]
    cosign(folder, "attest", "--key", f"{key}.key", *options, artifact)


def sign_file(folder: Path, file: Path, key: str) -> None:
    """Sign a file; its bundle is put beside it."""
    cosign(folder, "sign-blob", "--key", f"{key}.key", *PRIVATELY, "--bundle", f"{file}.sigstore.json", file)


def sign_file_as_before(folder: Path, file: Path, key: str) -> None:
    """Sign a file; the signature alone is put beside it."""
    options = ["--new-bundle-format=false", "--output-signature", f"{file}.sig"]
    cosign(folder, "sign-blob", "--key", f"{key}.key", *PRIVATELY, *options, file)
