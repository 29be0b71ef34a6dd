#!/usr/bin/env python3
"""Makes the files of the container image: `root.py FOLDER`.

FOLDER/debian gets the system libraries that the program is linked with, and the certificates of public authorities,
both from the Debian on which this runs; FOLDER/wasmspawner gets the program and its policies. FOLDER/policies gets the
policies alone, for an image that a pod mounts as a volume.

The same commit on the same Debian packages gives the same files, wherever the clone is.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "local"))

import toolchain

# cargo-auditable writes the list of all crates into the program, where scanners find it; auditable2cdx reads it.
SBOM_TOOLS = {"cargo-auditable": "0.7.7", "auditable2cdx": "0.1.0"}
# Packages that no program is linked with.
DATA = ("ca-certificates",)
AUTHORITIES = Path("/usr/share/ca-certificates/mozilla")
USER = 65532
POLICY_PROFILE = "image-guest"


def make(folder: Path) -> None:
    """Build the program and the policies, and fill the folder."""
    if not shutil.which("dpkg"):
        raise toolchain.Missing(
            "missing: Debian or Ubuntu, whose libraries go into the image; on other systems build the image with"
            " deploy/image/Containerfile"
        )
    toolchain.check_tools()
    toolchain.add_guest_target()
    shutil.rmtree(folder, ignore_errors=True)
    program = _program()
    with toolchain.step("Collecting the files of the image"):
        _add_program(folder / "wasmspawner", program)
        _add_system(folder / "debian", program)
        for policy in toolchain.POLICIES:
            _copy(toolchain.policy(policy, POLICY_PROFILE), folder / "policies" / _file_name(policy))
        _make_uniform(folder)


def _program() -> Path:
    """Build the program without the one-machine cluster. No path of this machine gets into it."""
    target = re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True))[1]
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    replaced = {cargo_home: "/cargo", toolchain.ROOT: "/wasmspawner", toolchain.target_dir(): "/target"}
    flags = [f"--remap-path-prefix={path}={instead}" for path, instead in replaced.items()]
    environment = os.environ | {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CARGO_INCREMENTAL": "0",
        "CARGO_TARGET_DIR": str(toolchain.target_dir()),
        "PATH": f"{_sbom_tools()}:{os.environ['PATH']}",
    }
    command = ["cargo", "auditable", "build", "--locked", "--profile", "image", "--no-default-features"]
    with toolchain.step("Building the program of the image (the first time takes ten minutes)"):
        toolchain.run(*command, "--target", target, "-p", "wasmspawner", "--bin", "wasmspawner", env=environment)
    packages = [argument for policy in toolchain.POLICIES for argument in ("-p", policy)]
    with toolchain.step("Building the policies"):
        toolchain.run(
            *("cargo", "build", "--locked", "--profile", POLICY_PROFILE, "--target", toolchain.GUEST_TARGET, *packages),
            env=environment,
        )
    return toolchain.target_dir() / target / "image/wasmspawner"


def _sbom_tools() -> Path:
    """The folder with the programs that make the list of crates."""

    def install(home: Path) -> None:
        quickly = {"CARGO_PROFILE_RELEASE_OPT_LEVEL": "0", "CARGO_PROFILE_RELEASE_LTO": "off"}
        environment = os.environ | quickly | {"CARGO_TARGET_DIR": str(home / "build")}
        with toolchain.step(f"Installing the tools for the list of crates in {home}"):
            for tool, version in SBOM_TOOLS.items():
                install = ["cargo", "install", "--quiet", "--locked", "--root", home, "--version", version, tool]
                toolchain.run(*install, env=environment)
        shutil.rmtree(home / "build")

    return toolchain.cached("image-tools", repr(SBOM_TOOLS).encode(), install) / "bin"


def _add_program(root: Path, program: Path) -> None:
    """The program, the policies, the list of crates, and the folder for `state_dir`."""
    shared = root / "usr/share/wasmspawner"
    _copy(program, root / "usr/bin/wasmspawner")
    _copy(toolchain.ROOT / "LICENSE", shared / "LICENSE")
    for policy in toolchain.POLICIES:
        _copy(toolchain.policy(policy, POLICY_PROFILE), shared / "policies" / _file_name(policy))
    crates = subprocess.check_output([_sbom_tools() / "auditable2cdx", program])
    (shared / "sbom.cdx.json").write_bytes(crates)


def _add_system(root: Path, program: Path) -> None:
    """The libraries that the program is linked with, certificates, and the names of the user."""
    linked = subprocess.check_output(["ldd", program], text=True)
    libraries = [Path(path) for path in re.findall(r"(/\S+) \(0x", linked)]
    for library in libraries:
        _copy(library.resolve(), root / library.relative_to("/"))
    for package in sorted({_package(library) for library in libraries} | set(DATA)):
        _add_package(root, package)
    authorities = sorted(AUTHORITIES.glob("*.crt"))
    if not authorities:
        raise toolchain.Missing("missing: Debian's package ca-certificates")
    _write(root / "etc/ssl/certs/ca-certificates.crt", "".join(file.read_text() for file in authorities))
    _write(root / "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    _write(root / "etc/passwd", f"wasmspawner:x:{USER}:{USER}::/nonexistent:/sbin/nologin\n")
    _write(root / "etc/group", f"wasmspawner:x:{USER}:\n")


def _package(library: Path) -> str:
    """The package that a library comes from."""
    return subprocess.check_output(["dpkg", "-S", library], text=True).split(":")[0]


def _add_package(root: Path, package: str) -> None:
    """The package's licence, and its version where scanners of images look for it."""
    _copy(Path(f"/usr/share/doc/{package}/copyright"), root / f"usr/share/doc/{package}/copyright")
    fields = ("Package", "Source", "Version", "Architecture", "Maintainer", "Homepage")
    line = subprocess.check_output(["dpkg-query", "--show", "--showformat", _format(fields), package], text=True)
    _write(
        root / f"var/lib/dpkg/status.d/{package}", re.sub(r"(?m)^\w+: \n", "", line) + "Status: install ok installed\n"
    )


def _format(fields: tuple[str, ...]) -> str:
    return "".join(f"{field}: ${{{field}}}\n" for field in fields)


def _file_name(policy: str) -> str:
    """`default.wasm`, for the package `policy-default`."""
    return f"{policy.removeprefix('policy-')}.wasm"


def _copy(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)
    place.chmod(0o755 if os.access(source, os.X_OK) else 0o644)


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def _make_uniform(folder: Path) -> None:
    """Modes that do not depend on this user's umask."""
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or (os.access(path, os.X_OK) and path.stat().st_mode & 0o100) else 0o644)


if __name__ == "__main__":
    try:
        match sys.argv[1:]:
            case [folder] if not folder.startswith("-"):
                make(Path(folder).resolve())
            case _:
                raise SystemExit(__doc__)
    except toolchain.Missing as missing:
        raise SystemExit(str(missing)) from None
