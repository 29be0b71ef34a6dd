"""The service's container image, as `make image` leaves it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from installation import container_image

import toolchain

sys.path.insert(0, str(toolchain.ROOT / "deploy/image"))

import build

LARGEST = 40_000_000  # bytes, compressed


@pytest.fixture(scope="module")
def image():
    try:
        return container_image()
    except FileNotFoundError:
        pytest.skip("skipped: the service's image; `make image` makes it")


@pytest.fixture(scope="module")
def root(image, tmp_path_factory):
    """The unpacked root file system."""
    bundle = tmp_path_factory.mktemp("image") / "bundle"
    subprocess.run(["umoci", "unpack", "--image", image, bundle], check=True, capture_output=True)
    return bundle / "rootfs"


def test_it_is_small_and_runs_as_an_ordinary_user(image):
    layout = image.parent / "wasmspawner"
    assert build.size(layout) < LARGEST
    manifest = json.loads((layout / "blobs" / build.digest(layout).replace(":", "/")).read_text())
    config = json.loads((layout / "blobs" / manifest["config"]["digest"].replace(":", "/")).read_text())
    assert config["config"]["User"] == "65532:65532"
    assert config["config"]["Entrypoint"] == ["/usr/bin/wasmspawner"]
    assert config["config"]["Cmd"] == ["serve", "--config", "/etc/wasmspawner/wasmspawner.yaml"]
    assert set(config["config"]["ExposedPorts"]) == {"8090", "8091"}


def test_it_has_one_program_and_nothing_that_gives_privileges(root):
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    programs = {str(path.relative_to(root)) for path in files if path.stat().st_mode & 0o111 and ".so" not in path.name}
    assert programs == {"usr/bin/wasmspawner"}
    assert not [path for path in files if path.stat().st_mode & 0o7022], "setuid, setgid, or writable for others"


def test_its_program_accepts_a_configuration_with_its_own_policies(root):
    config = {
        "auth": {"modes": ["jupyterhub"], "jupyterhub": {"api_url": "http://hub:8081/hub/api"}},
        "policies": [
            {
                "name": "deny-group",
                "path": "/usr/share/wasmspawner/policies/deny-group.wasm",
                "config": {"deny": ["guests"]},
            }
        ],
    }
    (root / "etc/wasmspawner.json").write_text(json.dumps(config))
    (root / "proc").mkdir(exist_ok=True)
    inside = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        f"--mount-proc={root}/proc",
        "chroot",
        "--userspec=65532:65532",
        root,
    ]
    command = [*inside, "/usr/bin/wasmspawner", "check", "--config", "/etc/wasmspawner.json"]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_it_lists_its_crates_and_packages(root):
    listed = json.loads((root / "usr/share/wasmspawner/sbom.cdx.json").read_text())
    crates = {component["name"] for component in listed["components"]}
    assert {"wasmtime", "kube", "tokio"} <= crates
    assert not {"proptest", "insta"} & crates
    packages = {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
    assert packages == {"ca-certificates", "libc6", "libgcc-s1"}


def test_no_path_of_this_machine_is_in_it(root):
    files = [root / "usr/bin/wasmspawner", *(root / "usr/share/wasmspawner/policies").iterdir()]
    for path in (Path.home() / ".cargo", toolchain.ROOT, toolchain.target_dir()):
        assert not [file.name for file in files if bytes(path) in file.read_bytes()], path


def test_packing_it_again_gives_the_same_digest(image, tmp_path, monkeypatch):
    layout, folder = image.parent / "wasmspawner", image.parent
    manifest = json.loads((layout / "blobs" / build.digest(layout).replace(":", "/")).read_text())
    created = json.loads((layout / "blobs" / manifest["config"]["digest"].replace(":", "/")).read_text())["created"]
    layers = [folder / "files/debian", folder / "files/wasmspawner"]
    build.pack(tmp_path / "again", layers, build.settings(), created)
    assert build.digest(tmp_path / "again") == build.digest(layout)
