"""What cosign signs is loaded, and nothing else."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import signing
from local_registry import LocalRegistry

KINDS = {
    "cosign": None,
    "p384": "EC -pkeyopt ec_paramgen_curve:P-384",
    "rsa": "RSA -pkeyopt rsa_keygen_bits:3072",
}


@pytest.fixture(scope="session")
def registry(tmp_path_factory):
    with LocalRegistry(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(scope="session")
def keys(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name, kind in KINDS.items():
        signing.new_key(folder, name, kind)
    signing.new_key(folder, "other")
    signing.new_key(folder, "ed25519", "ED25519")
    weak = ["openssl", "genrsa", "-out", "weak.pem", "1024"]
    subprocess.run(weak, cwd=folder, check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", "weak.pem", "-pubout", "-out", "weak.pub"], cwd=folder, check=True)
    return folder


def checked(folder: Path, source: dict, key: Path, registry: str = "") -> str:
    """What `wasmspawner check` says of a policy that this key must have signed; empty if it is accepted."""
    policy = {
        "name": "site",
        "config": {"site": "example"},
        "grants": {"raw-html": True},
        "signed_by": [str(key)],
        **source,
    }
    config = {"policies": [policy], "registries": {"plain_http": [registry] if registry else []}}
    file = folder / "config.yaml"
    file.write_text(json.dumps(config))
    command = [os.environ["WASMSPAWNER"], "check", "--local", "--config", file, "--state-dir", folder / "state"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


@pytest.mark.parametrize("form", [[], ["--new-bundle-format=false"]], ids=["bundle", "before-3"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_artifact_signed_with_any_kind_of_key(registry, keys, tmp_path, kind, form):
    repository = f"signed/{kind}-{len(form)}"
    artifact = signing.push(tmp_path, registry, repository)
    tag = {"oci": f"{registry.address}/{repository}:1"}
    refusal = checked(tmp_path, tag, keys / f"{kind}.pub", registry.address)
    assert "it is not signed, and `signed_by` wants a signature; sign it with `cosign sign --key KEY " in refusal, (
        refusal
    )
    signing.sign(keys, artifact, kind, *form)
    assert checked(tmp_path, tag, keys / f"{kind}.pub", registry.address) == ""
    refusal = checked(tmp_path, tag, keys / "other.pub", registry.address)
    assert "its signature is by no key of `signed_by`, or for something else" in refusal, refusal


def test_the_command_of_a_refusal_signs(registry, keys, tmp_path):
    signing.push(tmp_path, registry, "refused")
    tag = {"oci": f"{registry.address}/refused:1"}
    refusal = checked(tmp_path, tag, keys / "cosign.pub", registry.address)
    command = refusal.split("sign it with `cosign ")[1].split("`")[0].replace("KEY", "cosign.key")
    signing.cosign(keys, *command.split(), "--allow-http-registry", *signing.PRIVATELY)
    assert checked(tmp_path, tag, keys / "cosign.pub", registry.address) == ""


def test_a_statement_about_an_artifact_is_no_signature(registry, keys, tmp_path):
    artifact = signing.push(tmp_path, registry, "attested")
    signing.attest(keys, artifact, "cosign")
    refusal = checked(tmp_path, {"oci": artifact}, keys / "cosign.pub", registry.address)
    assert "it is not signed, and `signed_by` wants a signature" in refusal, refusal
    signing.sign(keys, artifact, "cosign")
    assert checked(tmp_path, {"oci": artifact}, keys / "cosign.pub", registry.address) == ""


def test_a_key_that_verifies_nothing_is_refused(keys, tmp_path):
    shutil.copy(signing.POLICY, tmp_path / "policy.wasm")
    for key, problem in (
        ("ed25519.pub", "is no key of ECDSA (P-256 or P-384) or RSA (2048 bits or more)"),
        ("weak.pub", "is no key of ECDSA (P-256 or P-384) or RSA (2048 bits or more)"),
        ("cosign.key", "has a private key, which nobody but the signer may have; name the public key"),
        ("nothing.pub", "cannot be read: No such file"),
    ):
        refusal = checked(tmp_path, {"path": "policy.wasm"}, keys / key)
        assert f"policies[0].signed_by: policy `site`: the public key {keys / key} {problem}" in refusal, refusal


def test_several_have_signed(registry, keys, tmp_path):
    artifact = signing.push(tmp_path, registry, "several")
    for key in ("other", "rsa", "cosign"):
        signing.sign(keys, artifact, key)
        signing.sign(keys, artifact, key, "--new-bundle-format=false")
    for key in ("cosign", "rsa", "other"):
        assert checked(tmp_path, {"oci": artifact}, keys / f"{key}.pub", registry.address) == ""


@pytest.mark.parametrize("sign", [signing.sign_file, signing.sign_file_as_before], ids=["bundle", "before-3"])
@pytest.mark.parametrize("kind", ["cosign", "p384", "rsa"])
def test_a_file_signed_with_any_kind_of_key(keys, tmp_path, kind, sign):
    policy = tmp_path / "policy.wasm"
    shutil.copy(signing.POLICY, policy)
    source = {"path": "policy.wasm"}
    assert "it is not signed" in checked(tmp_path, source, keys / f"{kind}.pub")
    sign(keys, policy, kind)
    assert checked(tmp_path, source, keys / f"{kind}.pub") == ""
    assert "by no key of `signed_by`" in checked(tmp_path, source, keys / "other.pub")
    policy.write_bytes(policy.read_bytes() + b"\0")
    assert "or for something else" in checked(tmp_path, source, keys / f"{kind}.pub")
