"""Helm, built from the version in tools/go.mod and kept outside the clone, or the program that HELM names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "deploy/local"), str(HERE.parent)]

import toolchain  # noqa: E402

TOOLS = HERE / "tools"
PACKAGE = "helm.sh/helm/v4/cmd/helm"
PINS = ("go.mod", "go.sum", "tools.go")
FLAGS = ("-trimpath", "-mod=readonly", "-ldflags=-s -w")


class Refused(Exception):
    """Helm ended with an error. The message is what it wrote."""


def program() -> Path:
    """The program, built if it does not exist. Raises `toolchain.Missing` if that is not possible."""
    if given := os.environ.get("HELM"):
        return Path(given)
    pins = b"".join((TOOLS / pin).read_bytes() for pin in PINS)
    return toolchain.cached("helm", pins + repr(FLAGS).encode(), _build) / "helm"


def _build(home: Path) -> None:
    if not shutil.which("go"):
        raise toolchain.Missing("missing: Go 1.21 or later, to build Helm: go is not on the PATH")
    objects = home.with_suffix(".build")
    environment = os.environ | {"CGO_ENABLED": "0", "GOCACHE": str(objects), "GOFLAGS": "", "GOWORK": "off"}
    with toolchain.step(f"Building Helm in {home} (minutes)"):
        command = ["go", "build", *FLAGS, "-o", str(home / "helm"), PACKAGE]
        if (code := subprocess.call(command, cwd=TOOLS, env=environment)) != 0:
            raise SystemExit(f"error: go build of Helm ended with {code}")
    shutil.rmtree(objects)


class Helm:
    """Helm with folders of its own, so that it neither reads nor changes what its user has."""

    def __init__(self, home: Path, kubeconfig: str = "") -> None:
        self.program = program()
        folders = {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "CACHE", "DATA")}
        self.environment = os.environ | folders | {"KUBECONFIG": kubeconfig or os.devnull}

    def run(self, *arguments: str | Path) -> str:
        """Run Helm and return its output. Raises `Refused` if it fails."""
        command = [str(part) for part in (self.program, *arguments)]
        ended = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=300)
        if ended.returncode != 0:
            raise Refused(ended.stderr + ended.stdout)
        return ended.stdout
