"""Programs that are built from the versions in a go.mod, and kept outside the clone."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy/local"))

import toolchain

FLAGS = ("-trimpath", "-mod=readonly")
OLDEST_GO = (1, 21)  # older versions do not download the version that go.mod requires


@dataclass(frozen=True)
class GoModule:
    """A folder with go.mod, go.sum and a source that names the programs."""

    name: str
    folder: Path
    packages: dict[str, str]  # the program's name: its package
    cgo: bool = False
    tags: str = ""
    variables: tuple[tuple[str, str], ...] = ()  # set by the linker
    data: tuple[str, str] | None = None  # a module, and a pattern for its files that are put beside the programs

    def built(self) -> Path:
        """The folder with the programs, built if it does not exist. Raises `toolchain.Missing` if that is not
        possible."""
        return toolchain.cached(self.name, self._pins(), self._build)

    def is_built(self) -> bool:
        """Whether the programs exist."""
        return (toolchain.cache_folder(self.name, self._pins()) / "complete").exists()

    def _pins(self) -> bytes:
        pins = b"".join(path.read_bytes() for path in sorted([*self.folder.glob("go.*"), *self.folder.glob("*.go")]))
        options = repr((FLAGS, self.packages, self.cgo, self.tags, self.variables))
        return pins + (options + (repr(self.data) if self.data else "")).encode()

    def version(self, package: str) -> str:
        """The version of a package that go.mod requires, such as `1.36.3`."""
        return re.search(rf"{re.escape(package)} v(\d+\.\d+\.\d+)", (self.folder / "go.mod").read_text()).group(1)

    def _build(self, home: Path) -> None:
        """Build with a separate cache of up to 3 GB, which is removed after success because nothing else would use it."""
        _check_go()
        objects = home.with_suffix(".build")
        environment = os.environ | {"GOCACHE": str(objects), "GOFLAGS": "", "GOWORK": "off"}
        environment["CGO_ENABLED"] = "1" if self.cgo else "0"
        linker = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in self.variables)])
        with toolchain.step(f"Building {', '.join(self.packages)} in {home} (minutes)"):
            for name, package in self.packages.items():
                options = [*FLAGS, "-tags", self.tags, "-ldflags", linker]
                command = ["go", "build", *options, "-o", str(home / name), package]
                if (code := subprocess.call(command, cwd=self.folder, env=environment)) != 0:
                    raise SystemExit(f"error: go build of {name} ended with {code}")
            if self.data:
                module, pattern = self.data
                command = ["go", "list", "-m", "-f", "{{.Dir}}", module]
                source = subprocess.check_output(command, cwd=self.folder, env=environment, text=True).strip()
                for file in Path(source).glob(pattern):
                    shutil.copyfile(file, home / file.name)  # without the write protection of Go's folder
        shutil.rmtree(objects)


def _check_go() -> None:
    wanted = f"Go {'.'.join(map(str, OLDEST_GO))} or later, to build the Kubernetes of the tests"
    if not shutil.which("go"):
        raise toolchain.Missing(f"missing: {wanted}: go is not on the PATH")
    installed = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()
    numbers = re.match(r"go(\d+)\.(\d+)", installed)
    if numbers and tuple(map(int, numbers.groups())) < OLDEST_GO:
        raise toolchain.Missing(f"missing: {wanted}: this is {installed}")
