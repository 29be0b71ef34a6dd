#!/usr/bin/env python3
"""A Kubernetes cluster with one real node, for tests and for developers.

    run.py cluster              start it, say how to use it, and remove it after Ctrl-C
    run.py with COMMAND...      run the command inside, with these variables: KUBECONFIG and TEST_NODE_KUBECONFIG,
                                TEST_NODE_ADDRESS, TEST_NODE_REGISTRY, TEST_NODE_NAMESPACE
    run.py push NUMBER SOURCE NAME:TAG
                                push an OCI archive or layout into the registry of the cluster with this number
    run.py clean                remove what killed clusters have left
    run.py build                build and download everything that is needed, and start nothing
    run.py cached               end with 0 if that has been done, and else say what is missing and end with 1

It needs root on Linux. Where it cannot run, `with` says so and runs the command without it.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "control-plane"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy/local"))

import debian
import images
import machine
from node import Node
from node_programs import Programs
from registry import Registry
from slot import Slot

import processes
import toolchain


def cluster() -> None:
    """Run a cluster until a signal ends it."""
    machine.prepare()
    with Node(Programs.built()) as node:
        print(what_to_try(node), flush=True)
        while True:
            signal.pause()


def run_with(command: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        machine.prepare()
        built = Programs.built()
    except toolchain.Missing as missing:
        print(f"skipped: tests on a real node; {missing}", flush=True)
        return subprocess.call(command)
    with Node(built) as node:
        print(f"==> A cluster with a real node, ready after {node.started_in:.1f} s", flush=True)
        return node.popen(command).wait()


def push(number: str, source: str, name: str) -> None:
    """Push an image into the registry of a running cluster."""
    print(Registry(Slot(int(number))).push(source, name))


def build() -> None:
    """Make everything that the tests need."""
    try:
        machine.prepare()
        Programs.built()
        debian.registry()
    except toolchain.Missing as missing:
        print(f"skipped: tests on a real node; {missing}")
        return
    for image in (images.pause, images.shell, images.lab):
        image()


def say_what_is_missing() -> int:
    """1 if a cluster could not be started at once."""
    if missing := Programs.missing():
        print(f"skipped: tests on a real node; not built yet: {', '.join(missing)} (`make node` builds them)")
    return 1 if missing else 0


def what_to_try(node: Node) -> str:
    """The text that is shown when everything is ready."""
    run = os.path.relpath(__file__)
    inside = f"nsenter --net=/run/netns/{node.name} --"
    return f"""
  Ready after {node.started_in:.0f} s. It is reachable from this machine only.

  The cluster:   export KUBECONFIG={node.kubeconfig} PATH={node.programs.kubernetes}:$PATH
                 kubectl get pods -A
                 kubectl run -it --rm try --image={node.shell_image} -- sh
  An image:      {run} push {node.slot.number} FOLDER-OR-ARCHIVE my-image:1   # an OCI layout or archive
                 kubectl run my-pod --image={node.registry}/my-image:1
  A program:     {inside} COMMAND    # runs in the node's network, where it reaches pods and services
  Logs:          {node.slot.home}/*.log

Ctrl-C ends it and removes everything.
"""


def end(number, _) -> None:
    """Leave all `with` statements: the cluster ends and is removed, and no other signal interrupts that."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

if __name__ == "__main__":
    for number in SIGNALS:
        signal.signal(number, end)
    try:
        match sys.argv[1:]:
            case ["cluster"]:
                cluster()
            case ["with", _, *_]:
                raise SystemExit(run_with(sys.argv[2:]))
            case ["push", number, source, name]:
                push(number, source, name)
            case ["clean"]:
                Slot.take().give_back()
            case ["build"]:
                build()
            case ["cached"]:
                raise SystemExit(say_what_is_missing())
            case _:
                raise SystemExit(__doc__)
    except toolchain.Missing as missing:
        raise SystemExit(f"error: {missing}") from None
    except processes.NotReady as failure:
        raise SystemExit(f"error: {failure}") from None
