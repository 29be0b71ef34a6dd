"""The programs of Kubernetes that the tests run, from the versions in go.mod."""

import os
from pathlib import Path

from go_module import GoModule

HERE = Path(__file__).resolve().parent


def _kubernetes(name: str, packages: dict[str, str]) -> GoModule:
    """Programs that report their version: kubectl refuses servers without one."""
    version = GoModule(name, HERE, packages).version("k8s.io/kubernetes")
    major, minor, _ = version.split(".")
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    variables = tuple((f"k8s.io/component-base/version.{name}", value) for name, value in stamps.items())
    return GoModule(name, HERE, packages, variables=variables)


CONTROL_PLANE = _kubernetes(
    "control-plane",
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
)
# Its controllers, with the definitions of its kinds.
CERT_MANAGER = GoModule(
    "cert-manager",
    HERE / "cert-manager",
    {"cert-manager": "wasmspawner.example/cert-manager"},
    data=("github.com/cert-manager/cert-manager", "deploy/crds/cert-manager.io_*.yaml"),
)
NODE = _kubernetes(
    "kubernetes-node",
    {name: f"k8s.io/kubernetes/cmd/{name}" for name in ("kubelet", "kube-scheduler", "kube-proxy", "kubectl")},
)


def folder() -> Path:
    """The folder with the programs of the control plane, built if it does not exist. Raises `toolchain.Missing` if that
    is not possible."""
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        return _given(Path(given))
    return CONTROL_PLANE.built()


def _given(assets: Path) -> Path:
    for name in CONTROL_PLANE.packages:
        if not os.access(assets / name, os.X_OK):
            raise SystemExit(
                f"error: KUBEBUILDER_ASSETS is {assets}, and there is no program {name} in it; add it"
                " (envtest has none of the controllers that end a namespace), or unset the variable"
            )
    return assets
