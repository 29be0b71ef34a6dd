"""A registry, keys, and what cosign does with them."""

import json
import os
import subprocess
from pathlib import Path

from local_registry import LocalRegistry

POLICY = Path(__file__).resolve().parents[1] / "guests/published-0.1.0/policy.wasm"
# Nothing is written into the public log of Sigstore.
PRIVATELY = ["--use-signing-config=false", "--tlog-upload=false", "--yes"]


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


def push(folder: Path, registry: LocalRegistry, repository: str, file: Path = POLICY) -> str:
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
