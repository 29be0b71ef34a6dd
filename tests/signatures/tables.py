"""Writes tests/tables/signatures.json: what a registry has of a signed policy, and signatures of its file."""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import signing
from local_registry import LocalRegistry

REPOSITORY = "site/policy"
TABLES = Path(__file__).resolve().parents[1] / "tables/signatures.json"


def digest(content: bytes) -> str:
    """The digest of what a registry has."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def stored(registry: LocalRegistry) -> dict:
    """All manifests by tag and by digest, and all files except the component."""
    tags = json.loads(registry.read(f"{REPOSITORY}/tags/list"))["tags"]
    manifests, files = {}, {}

    def add(name: str) -> None:
        manifest = registry.read(f"{REPOSITORY}/manifests/{name}")
        manifests[name] = manifests[digest(manifest)] = manifest.decode()
        content = json.loads(manifest)
        for referred in content.get("manifests", []):
            add(referred["digest"])
        for file in content.get("layers", []):
            if file["mediaType"] != "application/wasm":
                files[file["digest"]] = registry.read(f"{REPOSITORY}/blobs/{file['digest']}").decode()

    for tag in sorted(tags):
        add(tag)
    return {"manifests": manifests, "files": files}


def main() -> None:
    """Sign, and write down what cosign has made."""
    with tempfile.TemporaryDirectory() as home, LocalRegistry(Path(home)) as registry:
        folder = Path(home)
        for name, kind in {"site": None, "other": None, "rsa": "RSA -pkeyopt rsa_keygen_bits:2048"}.items():
            signing.new_key(folder, name, kind)
        # The reference is in what is signed in the older form, so all have the same repository, one after the other.
        states = {}
        artifact = signing.push(folder, registry, REPOSITORY)
        states["unsigned"] = stored(registry)
        signing.attest(folder, artifact, "site")
        states["attested"] = stored(registry)
        for state, key, options in (
            ("other", "other", []),
            ("bundle", "site", []),
            ("before-3", "site", ["--new-bundle-format=false"]),
            ("rsa", "rsa", []),
        ):
            shutil.rmtree(folder / "images")
            artifact = signing.push(folder, registry, REPOSITORY)
            signing.sign(folder, artifact, key, *options)
            states[state] = stored(registry)
        policy = folder / "policy.wasm"
        shutil.copy(signing.POLICY, policy)
        signing.sign_file(folder, policy, "site")
        signing.sign_file_as_before(folder, policy, "site")
        tables = {
            "keys": {name: (folder / f"{name}.pub").read_text() for name in ("site", "other", "rsa")},
            "artifact": artifact.split("@")[1],
            "registry": states,
            "file": {end: Path(f"{policy}{end}").read_text() for end in (".sigstore.json", ".sig")},
        }
    TABLES.write_text(json.dumps(tables, indent=1) + "\n")


if __name__ == "__main__":
    main()
