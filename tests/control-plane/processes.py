"""Programs in the background, each with a log, that end with this program."""

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

START = 90.0  # seconds; an idle machine needs four
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class NotReady(Exception):
    """A program ended or was not ready in time. The message contains the end of its log."""


class Processes:
    """Programs with their logs in one folder. `command` may extend each command line, and `enter` runs in each child
    before its program; `environment` replaces the one of this program."""

    def __init__(
        self,
        logs: Path,
        command: Callable[[list[str]], list[str]] = lambda command: command,
        enter: Callable[[], None] = lambda: None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.logs, self.command, self.enter, self.environment = logs, command, enter, environment
        self.children: dict[str, subprocess.Popen] = {}
        self.commands: dict[str, list[str]] = {}

    def launch(self, program: Path, *arguments: object, **options: object) -> None:
        """Start a program. An option `data_dir` becomes `--data-dir`."""
        flags = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
        self.launch_command(program.name, [str(program), *map(str, arguments), *flags])

    def launch_command(self, name: str, command: list[str]) -> None:
        """Start a command whose log gets this name."""
        self.commands[name] = command
        with open(self.log(name), "ab") as log:
            self.children[name] = subprocess.Popen(
                self.command(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=self._begin,
                env=self.environment,
            )

    def crash(self, name: str) -> None:
        """Kill a program without warning, and start it again."""
        self.children[name].kill()
        self.children[name].wait()
        self.launch_command(name, self.commands[name])

    def wait(self, name: str, ready: Callable[[], object], seconds: float = START) -> None:
        """Wait until `ready()` is true. Raises `NotReady`, also when any of the programs has ended."""
        give_up = time.monotonic() + seconds
        while not ready():
            for known, child in self.children.items():
                if child.poll() is not None:
                    raise NotReady(f"{known} ended with {child.returncode}; {self._end_of_log(known)}")
            if time.monotonic() > give_up:
                raise NotReady(f"{name} was not ready within {seconds:.0f} s; {self._end_of_log(name)}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill them all, because none of them has data to keep."""
        for child in self.children.values():
            child.kill()
        for child in self.children.values():
            child.wait()
        self.children.clear()

    def log(self, name: str) -> Path:
        """The log of a program."""
        return self.logs / f"{name}.log"

    def _end_of_log(self, name: str) -> str:
        lines = self.log(name).read_text(errors="replace").splitlines()[-15:]
        return "its log ends:\n" + "\n".join(f"    {line}" for line in lines)

    def _begin(self) -> None:
        """Run in the child: the kernel kills it when this program ends for any reason."""
        if LIBC is not None:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        self.enter()
