"""Builds the programs of the control plane from the versions in go.mod, and keeps them outside the clone."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "deploy/local"))

import toolchain  # noqa: E402

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}
PINS = ("go.mod", "go.sum", "tools.go")
FLAGS = ("-trimpath", "-mod=readonly")
OLDEST_GO = (1, 21)  # older versions do not download the version that go.mod requires


def folder() -> Path:
    """The folder with the programs, built if it does not exist. Raises `toolchain.Missing` if that is not possible."""
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        return _given(Path(given))
    pins = b"".join((HERE / pin).read_bytes() for pin in PINS)
    return toolchain.cached("control-plane", pins + repr(FLAGS).encode(), _build)


def _given(assets: Path) -> Path:
    for name in PACKAGES:
        if not os.access(assets / name, os.X_OK):
            raise SystemExit(
                f"error: KUBEBUILDER_ASSETS is {assets}, and there is no program {name} in it; add it"
                " (envtest has none of the controllers that end a namespace), or unset the variable"
            )
    return assets


def _check_go() -> None:
    wanted = f"Go {'.'.join(map(str, OLDEST_GO))} or later, to build the control plane of the tests"
    if not shutil.which("go"):
        raise toolchain.Missing(f"missing: {wanted}: go is not on the PATH")
    installed = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()
    numbers = re.match(r"go(\d+)\.(\d+)", installed)
    if numbers and tuple(map(int, numbers.groups())) < OLDEST_GO:
        raise toolchain.Missing(f"missing: {wanted}: this is {installed}")


def _build(home: Path) -> None:
    """Build with a separate cache of 3 GB, which is removed after success because nothing else would use it."""
    _check_go()
    objects = home.with_suffix(".build")
    environment = os.environ | {"CGO_ENABLED": "0", "GOCACHE": str(objects), "GOFLAGS": "", "GOWORK": "off"}
    with toolchain.step(f"Building etcd and the Kubernetes control plane in {home} (minutes)"):
        for name, package in PACKAGES.items():
            command = ["go", "build", *FLAGS, "-ldflags", _stamps(), "-o", home / name, package]
            if (code := subprocess.call([str(part) for part in command], cwd=HERE, env=environment)) != 0:
                raise SystemExit(f"error: go build of {name} ended with {code}")
    shutil.rmtree(objects)


def _stamps() -> str:
    """The version that the programs report: kubectl refuses servers without a version."""
    version = re.search(r"k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)", (HERE / "go.mod").read_text())
    major, minor, patch = version.groups()
    stamps = {"gitVersion": f"v{major}.{minor}.{patch}", "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())])
