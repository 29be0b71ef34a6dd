"""Whether this machine can run a real node."""

import os
import subprocess
import sys
from pathlib import Path

import debian

import toolchain


def prepare() -> None:
    """Install what is missing. Raises `toolchain.Missing` if this machine cannot run a node."""
    if sys.platform != "linux":
        raise toolchain.Missing("missing: Linux, to run a real node")
    if os.geteuid() != 0:
        raise toolchain.Missing("missing: root, to run a real node: it needs namespaces, mounts and control groups")
    if not os.access("/sys/fs/cgroup", os.W_OK) or not _may_make_namespaces():
        raise toolchain.Missing("missing: control groups and namespaces, to run a real node: this may be a container")
    if "overlay" not in Path("/proc/filesystems").read_text() and subprocess.call(["modprobe", "-q", "overlay"]) != 0:
        raise toolchain.Missing("missing: the file system overlay, to run a real node: the kernel does not have it")
    debian.install()


def _may_make_namespaces() -> bool:
    return subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True).returncode == 0
