"""The service's program, as it is built in the workspace, with the policies of the workspace."""

import copy
import hashlib
import subprocess
from pathlib import Path

import yaml

import stack
import toolchain

BUNDLED = "/usr/share/wasmspawner/policies/"


def program() -> Path:
    """The program. `make chart` builds it."""
    path = toolchain.target_dir() / "debug/wasmspawner"
    assert path.exists(), f"{path} is missing; `make chart` builds it"
    return path


def printed(*arguments: str) -> str:
    """What a command of the program prints."""
    return subprocess.run([program(), *arguments], capture_output=True, text=True, check=True, timeout=300).stdout


def runnable(configuration: dict, folder: Path, secrets: dict[str, str] | None = None) -> dict:
    """A configuration of the chart with paths of this machine in place of those in the pod.

    `secrets` gives files for the paths of mounted Secrets. Policies of a site, and of a registry, are replaced by the policy `default`,
    which nobody has signed.
    """
    text = yaml.safe_dump(configuration)
    for path, file in (secrets or {}).items():
        assert path in text, f"the configuration does not use {path}"
        text = text.replace(path, file)
    result = copy.deepcopy(yaml.safe_load(text))
    result["state_dir"] = str(folder / "state")
    for policy in result.get("policies", []):
        path = policy.get("path", "")
        name = path.removeprefix(BUNDLED).removesuffix(".wasm") if BUNDLED in path else "default"
        policy.pop("oci", None)
        policy.pop("signed_by", None)
        policy["path"] = str(toolchain.policy(f"policy-{name}"))
    return result


def check(configuration: dict, folder: Path) -> None:
    """Fail unless the service accepts the configuration and its policies."""
    file = folder / "checked.yaml"
    file.write_text(yaml.safe_dump(configuration))
    ended = subprocess.run([program(), "check", "--config", file], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def free_address() -> str:
    """An address on loopback on which nothing listens."""
    return f"127.0.0.1:{stack.free_port()}"


def token(user: str) -> str:
    """A static token."""
    return f"token-of-{user}-for-the-tests"


def entry(user: str, scopes: list[str]) -> dict:
    """What the file of tokens says about the token of a user."""
    digest = hashlib.sha256(token(user).encode()).hexdigest()
    groups = [{"name": user, "id": 4242}]
    return {"sha256": digest, "user": user, "scopes": scopes, "uid": 4242, "gid": 4242, "groups": groups}
