#!/usr/bin/env python3
"""A Kubernetes control plane for tests.

    run.py programs             build it if necessary, and print the folder
    run.py with COMMAND...      run the command with TEST_KUBECONFIG set to a new control plane, which ends with it
    run.py with-two COMMAND...  the same with another one in TEST_KUBECONFIG_2, so that two tests have one at a time

KUBEBUILDER_ASSETS may name a folder with other programs (etcd, kube-apiserver, kube-controller-manager). If
TEST_KUBECONFIG is set, `with` starts nothing, and the tests use that cluster. KUBECONFIG is ignored, because it may
refer to a production cluster. If there is no Go either, the command runs without a cluster, and tests that need one are
skipped.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy/local"))

import control_plane
import processes
import programs
import toolchain

VARIABLES = ("TEST_KUBECONFIG", "TEST_KUBECONFIG_2")


def run_with(control_planes: int, command: list[str]) -> int:
    """Run the command and return its exit code."""
    if config := os.environ.get("TEST_KUBECONFIG"):
        print(f"==> The tests use the cluster of TEST_KUBECONFIG={config}", flush=True)
        return subprocess.call(command)
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    try:
        folder = programs.folder()
    except toolchain.Missing as missing:
        print(f"skipped: tests against a Kubernetes control plane; {missing}", flush=True)
        return subprocess.call(command, env=environment)
    environment |= cert_manager()
    with ExitStack() as running:
        for number, variable in enumerate(VARIABLES[:control_planes]):
            begun, address = time.monotonic(), control_plane.own_address(number)
            one = running.enter_context(control_plane.ControlPlane(folder, address=address))
            environment[variable] = str(one.kubeconfig)
            print(f"==> A control plane for the tests, ready after {time.monotonic() - begun:.1f} s", flush=True)
        return subprocess.call(command, env=environment)


def cert_manager() -> dict[str, str]:
    """Where the tests find cert-manager; nothing if it cannot be built."""
    try:
        return {"CERT_MANAGER": str(programs.CERT_MANAGER.built())}
    except toolchain.Missing as missing:
        print(f"skipped: tests with cert-manager; {missing}", flush=True)
        return {}


def end(number, _) -> None:
    """Leave all `with` statements: the control plane ends, and its folder is removed."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        match sys.argv[1:]:
            case ["programs"]:
                print(programs.folder())
                programs.CERT_MANAGER.built()
            case ["with", _, *_]:
                raise SystemExit(run_with(1, sys.argv[2:]))
            case ["with-two", _, *_]:
                raise SystemExit(run_with(2, sys.argv[2:]))
            case _:
                raise SystemExit(__doc__)
    except toolchain.Missing as missing:
        raise SystemExit(str(missing)) from None
    except processes.NotReady as failure:
        raise SystemExit(f"error: {failure}") from None
