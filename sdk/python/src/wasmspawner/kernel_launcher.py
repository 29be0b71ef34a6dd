"""The main program of a kernel's pod: starts the kernel's process, reports on it to the service, does what it asks.

The service mounts this file and `service_link.py` into the pod and runs `python3 launcher.py`. So it needs nothing but
the standard library of Python 3.8 or later, and finds its input beside itself: `launch.json`, `connection.json`,
`token`.

One thread owns the process and handles one event after the other: signals of the operating system and requests of the
service. A second thread follows the service's event stream, a third reports the newest state.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

if __package__:
    from .service_link import Reporter, Service, follow
else:
    sys.path.append(str(Path(__file__).absolute().parent))  # `python3 -I` leaves it out
    from service_link import Reporter, Service, follow


def log(message):
    """Print a line to the pod's log."""
    print(f"kernel launcher: {message}", file=sys.stderr, flush=True)


def on_event(events):
    """A function that puts what the service asks for into the queue of events."""

    def put(name, data):
        try:
            if name == "signal":
                request = json.loads(data)
                events.put(("signal", int(request["number"]), int(request["signum"])))
            elif name == "launch":
                events.put(("launch", int(json.loads(data)["number"])))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            log(f"an event '{name}' of the service is not understood and ignored")

    return put


class Supervisor:
    """Owns the kernel's process: starts it, signals its group, reaps it, and decides when the pod ends."""

    def __init__(self, launch, command, events, report):
        self._launch = launch
        self._command = command
        self._events = events
        self._report = report
        self._number = 0
        self._group = 0  # of the newest process; 0 if none was started
        self._running = False
        self._exit_code = 0
        self._stopping = False
        # When to kill a process that was asked to stop, or to end after a process has ended. None: never.
        self._deadline = None

    def run(self):
        """Run the kernel until the pod should end. Returns the launcher's own exit code."""
        self._start(1)
        while self._running or not self._stopping:
            try:
                event = self._events.get(timeout=self._seconds_left())
            except queue.Empty:
                if not self._running:
                    break
                self._signal(signal.SIGKILL)
                self._deadline = None
                continue
            getattr(self, "_on_" + event[0])(*event[1:])
        self._signal(signal.SIGKILL)  # what the kernel has left behind
        return 0 if self._stopping or self._exit_code == 0 else 1

    def _seconds_left(self):
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0)

    def _start(self, number):
        self._number = number
        self._deadline = None
        cwd = self._launch.get("working_dir") or None
        if cwd and not os.path.isdir(cwd):
            log(f"the folder {cwd} does not exist in the kernel's pod; the kernel starts in {os.getcwd()}")
            cwd = None
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self._launch.get("env", {})},
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            log(f"cannot start the kernel's program {self._command[0]}: {error}")
            self._group = 0
            self._ended(127)
            return
        process.returncode = 0  # `_on_child` reaps it; without this, `Popen` would try to reap it as well
        self._group = process.pid
        self._running = True
        self._report({"number": number, "state": "running"})

    def _ended(self, exit_code):
        self._running = False
        self._exit_code = exit_code
        if not self._stopping:
            self._deadline = time.monotonic() + self._launch.get("linger_seconds", 60)
        self._report({"number": self._number, "state": "ended", "exit_code": exit_code})

    def _signal(self, signum):
        if self._group:
            # Perhaps nobody is left in the group, or there is no such signal.
            with contextlib.suppress(OSError, OverflowError):
                os.killpg(self._group, signum)

    def _reap(self, options):
        """Reap one child. False if there is none to reap. As process 1, this one has orphans for children, too."""
        try:
            pid, status = os.waitpid(-1, options)
        except ChildProcessError:
            return False
        if self._running and pid == self._group:
            self._ended(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
        return pid != 0

    def _on_child(self):
        while self._reap(os.WNOHANG):
            pass

    def _on_signal(self, number, signum):
        if self._running and number == self._number:
            self._signal(signum)

    def _on_launch(self, number):
        if number <= self._number or self._stopping:
            return
        # Also if the process has ended: a child that it left behind may hold the kernel's ports.
        self._signal(signal.SIGKILL)
        while self._running and self._reap(0):
            pass
        self._start(number)

    def _on_stop(self):
        if not self._stopping:
            self._stopping = True
            self._deadline = time.monotonic() + self._launch.get("stop_seconds", 5)
            self._signal(signal.SIGTERM)


def main(folder):
    """Run the kernel that the folder's files describe. Returns the exit code."""
    launch = json.loads((folder / "launch.json").read_text("utf-8"))
    connection = json.loads((folder / "connection.json").read_text("utf-8"))
    connection["ip"] = os.environ.get("POD_IP") or os.environ.get("WASMSPAWNER_POD_IP") or "127.0.0.1"
    events = queue.SimpleQueue()  # its `put` may be called by handlers of signals
    for signum, event in ((signal.SIGTERM, "stop"), (signal.SIGINT, "stop"), (signal.SIGCHLD, "child")):
        signal.signal(signum, lambda _signum, _frame, event=event: events.put((event,)))
    service = Service(launch["url"], "/launcher", folder / "token", "kernel", log)
    reporter = Reporter(service)
    with tempfile.TemporaryDirectory(prefix="kernel-") as private:
        path = os.path.join(private, "connection.json")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(connection, file)
        command = [word.replace("{connection_file}", path) for word in launch["command"]]
        threading.Thread(target=reporter.run, daemon=True).start()
        threading.Thread(target=follow, args=(service, reporter.repeat, on_event(events)), daemon=True).start()
        return Supervisor(launch, command, events, reporter.report).run()


if __name__ == "__main__":
    sys.exit(main(Path(__file__).absolute().parent))
