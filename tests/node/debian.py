"""The Debian packages that the test cluster is made with."""

import os
import shutil
import subprocess
from pathlib import Path

import toolchain

PACKAGES = {  # what the package is needed for: a program, or a file
    "apache2-utils": "htpasswd",
    "busybox-static": "busybox",
    "debootstrap": "debootstrap",
    "gcc": "gcc",
    "iproute2": "ip",
    "libc6-dev": "/usr/include/stdio.h",
    "libseccomp-dev": "/usr/include/seccomp.h",
    "nftables": "nft",
    "openssl": "openssl",
    "pkg-config": "pkg-config",
    "procps": "sysctl",
    "skopeo": "skopeo",
    "umoci": "umoci",
    "util-linux": "nsenter",
}
PLACES = os.pathsep.join(["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"])


def install() -> None:
    """Install the packages that are not there. Raises `toolchain.Missing` where that is not possible."""
    if not (lacking := _lacking()):
        return
    if not shutil.which("apt-get"):
        raise toolchain.Missing(f"missing: what Debian has in the packages {' '.join(lacking)}")
    with toolchain.step(f"Installing the Debian packages {' '.join(lacking)}"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        command = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", *lacking]
        ended = subprocess.run(command, **quiet)
    if ended.returncode != 0 or (lacking := _lacking()):
        reason = ended.stderr.strip().splitlines()[-1:]
        raise toolchain.Missing(f"missing: the Debian packages {' '.join(lacking)}: {' '.join(reason)}")


def registry() -> Path:
    """The program docker-registry."""
    return _unpacked("docker-registry", "usr/bin/docker-registry")


def nginx() -> Path:
    """The program nginx."""
    return _unpacked("nginx", "usr/sbin/nginx")


def _unpacked(package: str, program: str) -> Path:
    """A program of a package that is unpacked and not installed, because that would start a server that anyone can
    reach."""
    if installed := shutil.which(Path(program).name, path=PLACES):
        return Path(installed)
    return toolchain.cached(package, b"unpacked", lambda home: _unpack(package, home)) / program


def _unpack(package: str, home: Path) -> None:
    if not shutil.which("apt-get"):
        raise toolchain.Missing(f"missing: {package}, which Debian has in the package of this name")
    home.mkdir(exist_ok=True)
    quiet = {"cwd": home, "check": True, "capture_output": True}
    with toolchain.step(f"Unpacking {package} in {home}"):
        try:
            # As root, because the folder is not for apt's own user.
            subprocess.run(["apt-get", "download", "-o", "APT::Sandbox::User=root", package], **quiet)
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode(errors="replace").strip()
            raise toolchain.Missing(f"missing: {package}: {reason}") from None
        for archive in home.glob("*.deb"):
            subprocess.run(["dpkg", "-x", archive.name, "."], **quiet)
            archive.unlink()


def _lacking() -> list[str]:
    return [package for package, proof in PACKAGES.items() if not _there(proof)]


def _there(proof: str) -> bool:
    return Path(proof).exists() if proof.startswith("/") else shutil.which(proof, path=PLACES) is not None
