#!/usr/bin/env python3
"""Makes the container images without a container engine: `build.py [FOLDER]`.

FOLDER (by default `container` where cargo builds) gets OCI layouts: `wasmspawner`, the service; `policies`, which a pod can
mount as a volume; and `policy-NAME`, an artifact that the service reads from a registry. Copy them to one with:

    skopeo copy oci:FOLDER/wasmspawner:VERSION docker://registry.example.org/wasmspawner:VERSION
"""

import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import artifact
import root

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[0] / "local"))

import toolchain  # noqa: E402

# Options of umoci for the instructions of the Containerfile's last stage.
SETTINGS = {
    "USER": "--config.user",
    "ENV": "--config.env",
    "EXPOSE": "--config.exposedports",
    "LABEL": "--config.label",
    "ENTRYPOINT": "--config.entrypoint",
    "CMD": "--config.cmd",
}


def main(folder: Path) -> None:
    """Make the images, and print where they are, their digests and sizes."""
    _check_tools()
    files = folder / "files"
    # Before the minutes that building takes, in which there may be another commit.
    created = datetime.datetime.fromtimestamp(_time_of_source(), datetime.UTC).isoformat()
    root.make(files)
    with toolchain.step("Packing the images"):
        pack(folder / "wasmspawner", [files / "debian", files / "wasmspawner"], settings(), created)
        pack(folder / "policies", [files / "policies"], [], created)
    shutil.copyfile(files / "wasmspawner/usr/share/wasmspawner/sbom.cdx.json", folder / "sbom.cdx.json")
    names = ["wasmspawner", "policies"]
    for component in sorted((files / "policies").glob("*.wasm")):
        names.append(f"policy-{component.stem}")
        artifact.pack(folder / names[-1], component, version(), created)
    for name in names:
        layout = folder / name
        print(f"{layout}:{version()}  {digest(layout)}  {size(layout) / 1e6:.1f} MB compressed")


def settings() -> list[str]:
    """The settings of the service's image, as options of umoci."""
    last_stage = (HERE / "Containerfile").read_text().rpartition("\nFROM ")[2]
    options = []
    for instruction, value in re.findall(r"(?m)^([A-Z]+) (.*)$", last_stage):
        if instruction == "COPY":
            continue
        values = json.loads(value) if value.startswith("[") else shlex.split(value)
        options += [f"{SETTINGS[instruction]}={each}" for each in values]
    return options


def version() -> str:
    """The version of the product."""
    return re.search(r'(?m)^version = "(.*)"$', (toolchain.ROOT / "Cargo.toml").read_text())[1]


def digest(layout: Path) -> str:
    """The digest of the image's manifest."""
    return json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]


def size(layout: Path) -> int:
    """The bytes that a registry keeps, and a node without any part of the image has to pull."""
    return sum(blob.stat().st_size for blob in (layout / "blobs/sha256").iterdir())


def _check_tools() -> None:
    missing = [tool for tool in ("umoci", "tar") if not shutil.which(tool)]
    if missing:
        raise toolchain.Missing(f"missing: {', '.join(missing)}: Debian and Ubuntu have packages of these names")


def _time_of_source() -> int:
    """Seconds since 1970 of the commit, so that each build of it gives the same image."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    commit = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=HERE, capture_output=True, text=True)
    return int(commit.stdout) if commit.returncode == 0 else 0


def pack(layout: Path, layers: list[Path], options: list[str], created: str) -> None:
    """Make an OCI layout with one image, whose layers are the folders."""
    shutil.rmtree(layout, ignore_errors=True)
    image = f"{layout}:{version()}"
    toolchain.run("umoci", "init", "--layout", layout)
    toolchain.run("umoci", "new", "--image", image)
    for layer in layers:
        archive = layer.with_suffix(".tar")
        same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--format=gnu"]
        toolchain.run("tar", *same, "-cf", archive, "-C", layer, ".")
        history = ["--history.created", created, "--history.created_by", f"deploy/image/build.py ({layer.name})"]
        toolchain.run("umoci", "raw", "add-layer", "--image", image, *history, archive)
        archive.unlink()
    about = [f"--created={created}", f"--config.label=org.opencontainers.image.version={version()}"]
    toolchain.run("umoci", "config", "--no-history", "--image", image, *about, *options)
    toolchain.run("umoci", "gc", "--layout", layout)  # what the steps before the last left


if __name__ == "__main__":
    try:
        match sys.argv[1:]:
            case []:
                main(toolchain.target_dir() / "container")
            case [folder] if not folder.startswith("-"):
                main(Path(folder).resolve())
            case _:
                raise SystemExit(__doc__)
    except toolchain.Missing as missing:
        raise SystemExit(str(missing)) from None
