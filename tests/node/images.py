"""The images of the test cluster, made on this machine and kept outside the clone as OCI layouts."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import toolchain

HERE = Path(__file__).resolve().parent
RELEASE = "trixie"
PYTHON = "3.13"  # the version in that release of Debian
MANYLINUX = ("1", "2010", "2014", *(f"_2_{minor}" for minor in range(5, 42)))  # up to that release's C library
LAB_PACKAGES = ("python3", "python3-venv")
LAB_PINS = (toolchain.LOCAL / "requirements.txt", toolchain.LOCAL / "constraints.txt")
LAB_REQUIREMENTS = ("jupyterhub", "jupyterlab", "ipykernel", "aiohttp", "distributed")
# What a lab does not need: documentation, translations, caches of packages, sources of JavaScript.
NOT_NEEDED = (
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/info",
    "var/cache/apt",
    "var/cache/debconf",
    "var/lib/apt/lists",
    "var/log",
    "opt/jupyter/lib/python3.13/site-packages/pip",
)


@dataclass(frozen=True)
class Image:
    """An image in an OCI layout. Its tag is a digest of what it was made from."""

    name: str
    layout: Path
    tag: str

    @property
    def source(self) -> str:
        """The image as skopeo and umoci name it."""
        return f"{self.layout}:latest"


def pause() -> Image:
    """The image of every pod's first container."""
    source = HERE / "pause.c"

    def fill(root: Path) -> None:
        _run("gcc", "-Os", "-static", "-o", root / "pause", source)

    return _image("pause", source.read_bytes(), fill, "--config.entrypoint", "/pause", "--config.user", "65535:65535")


def shell() -> Image:
    """Busybox, with a folder for temporary files that everyone may write to."""
    busybox = Path(shutil.which("busybox", path="/usr/bin:/bin"))

    def fill(root: Path) -> None:
        for folder in ("bin", "etc", "tmp", "root"):
            (root / folder).mkdir()
        (root / "tmp").chmod(0o1777)
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        shutil.copy(busybox, root / "bin/busybox")
        _run("chroot", root, "/bin/busybox", "--install", "-s", "/bin")

    return _image("shell", busybox.read_bytes(), fill, "--config.cmd", "/bin/sh", "--config.env", "PATH=/bin")


def lab() -> Image:
    """Debian's Python with JupyterHub, JupyterLab and a kernel, in the versions that `deploy/local` pins."""
    pins = b"".join(path.read_bytes() for path in LAB_PINS)

    def fill(root: Path) -> None:
        # The packages are downloaded outside: the new system knows neither this machine's proxies nor its certificates.
        wheels = root.with_name("wheels")
        names = [f"manylinux{name}_{os.uname().machine}" for name in MANYLINUX]
        platforms = [part for name in names for part in ("--platform", name)]
        pip = [toolchain.environment() / "python", "-m", "pip", "--disable-pip-version-check", "--no-input", "-q"]
        target = ["--only-binary=:all:", "--python-version", PYTHON, *platforms, "-d", wheels]
        constraints = [part for path in LAB_PINS for part in ("-c", path)]
        _run(*pip, "download", *target, *constraints, *LAB_REQUIREMENTS)
        include = "--include=" + ",".join(LAB_PACKAGES)
        mirror = [given] if (given := os.environ.get("DEBIAN_MIRROR")) else []
        _run("debootstrap", "--variant=minbase", include, RELEASE, root, *mirror)
        wheels.rename(root / "wheels")
        _run("chroot", root, "python3", "-m", "venv", "/opt/jupyter")
        install = ["/opt/jupyter/bin/pip", "install", "-q", "--no-index", "--find-links", "/wheels"]
        _run("chroot", root, "env", "-i", "PATH=/usr/bin:/bin", *install, *LAB_REQUIREMENTS)
        shutil.rmtree(root / "wheels")
        for folder in NOT_NEEDED:
            shutil.rmtree(root / folder, ignore_errors=True)
        for sources in (root / "opt/jupyter/share/jupyter/lab").rglob("*.js.map"):
            sources.unlink()

    choices = repr((RELEASE, LAB_PACKAGES, LAB_REQUIREMENTS, NOT_NEEDED)).encode()
    path = "PATH=/opt/jupyter/bin:/usr/bin:/bin"
    return _image(
        "lab", pins + choices, fill, "--config.cmd", "jupyterhub-singleuser", "--config.env", path,
        "--config.env", "LANG=C.UTF-8", "--config.workingdir", "/tmp",
    )  # fmt: skip


def distinct(image: Image, folder: Path, label: str) -> Image:
    """The same image with a label, and so with another digest: a node that has the one does not have the other."""
    layout = folder / label
    shutil.copytree(image.layout, layout)
    _run("umoci", "config", "--image", f"{layout}:latest", "--config.label", f"of-test={label}")
    return Image(f"{image.name}-{label}", layout, label)


def _image(name: str, inputs: bytes, fill, *config: str) -> Image:
    pins = inputs + repr(config).encode()

    def build(home: Path) -> None:
        with toolchain.step(f"Making the image {name} in {home}"):
            shutil.rmtree(home, ignore_errors=True)
            root = home / "root"
            root.mkdir(parents=True)
            fill(root)
            layout = home / "layout"
            image = f"{layout}:latest"
            _run("umoci", "init", "--layout", layout)
            _run("umoci", "new", "--image", image)
            _run("umoci", "insert", "--image", image, root, "/")
            _run("umoci", "config", "--image", image, *config)
            shutil.rmtree(root)

    folder = toolchain.cached(f"image-{name}", pins, build)
    return Image(name, folder / "layout", hashlib.sha256(pins).hexdigest()[:12])


def _run(*command: str | Path) -> None:
    ended = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"error: {command[0]} ended with {ended.returncode}:\n{ended.stdout[-3000:]}")
