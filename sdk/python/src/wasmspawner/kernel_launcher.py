"""The main program of a kernel's pod: starts the kernel's process, reports on it to the service, does what it asks.

The service mounts this file into the pod and runs `python3 launcher.py`. So it is one file, needs nothing but the
standard library of Python 3.8 or later, and finds its input beside itself: `launch.json`, `connection.json`, `token`.

One thread owns the process and handles one event after the other: signals of the operating system and requests of the
service. A second thread follows the service's event stream, a third reports the newest state.
"""

import contextlib
import http.client
import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
REQUEST_TIMEOUT = 15.0
# The service sends a comment every 15 seconds.
SILENCE_TIMEOUT = 60.0
LONGEST_LINE = 64 * 1024
_FAILURES = (OSError, http.client.HTTPException, ValueError)


def log(message):
    """Print a line to the pod's log."""
    print(f"kernel launcher: {message}", file=sys.stderr, flush=True)


def pause_after(failures, status):
    """Seconds until the next attempt, after failures in a row of which the last had this status (0: no answer)."""
    # The service may be restarting and not know the kernel yet, but these answers rarely change within a second.
    soon = status not in (401, 403, 404)
    pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE) if soon else LONGEST_PAUSE
    return pause * random.uniform(0.5, 1.0)  # not all kernels at once


class Service:
    """The service's address for the launcher of this kernel.

    `http.client` follows no redirects and uses no proxies, so the token goes to the service alone.
    """

    def __init__(self, url, token_file):
        self._url = urlsplit(url)
        self._token_file = token_file
        self._trouble = ""

    def put(self, state):
        """Send a state and return the status of the answer; 0 if there was none."""
        try:
            with self._request("PUT", REQUEST_TIMEOUT, json.dumps(state).encode()) as response:
                self._note("" if response.status < 300 else f"it answers with the status {response.status}")
                return response.status
        except _FAILURES as error:
            self._note(str(error) or type(error).__name__)
            return 0

    def _note(self, trouble):
        """Say in the pod's log why the service does not take reports, once for each reason."""
        if trouble and trouble != self._trouble:
            log(f"the service at {self._url.netloc} cannot be told about the kernel: {trouble}")
        self._trouble = trouble

    def follow(self, on_open, on_event):
        """Follow the event stream to its end. Returns the status of the answer, and whether anything was received."""
        status, received = 0, False
        try:
            with self._request("GET", SILENCE_TIMEOUT) as response:
                status = response.status
                if status != 200:
                    return status, received
                on_open()
                event = {}
                for line in iter(lambda: response.readline(LONGEST_LINE), b""):
                    received = True
                    field, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
                    if field:
                        event[field] = value.lstrip(" ")  # the service writes the data of an event in one line
                    elif not value and event:
                        on_event(event.get("event"), event.get("data"))
                        event = {}
        except _FAILURES:
            pass
        return status, received

    @contextlib.contextmanager
    def _request(self, method, timeout, body=None):
        # The token is read for each request, because a mounted Secret may change.
        token = self._token_file.read_text("utf-8").strip()
        headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._url.hostname, self._url.port, timeout=timeout)
        try:
            connection.request(method, self._url.path.rstrip("/") + "/launcher", body, headers)
            yield connection.getresponse()
        finally:
            connection.close()


class Reporter:
    """Sends the newest state until the service has taken it. As one thread sends, no older state follows a newer."""

    def __init__(self, service):
        self._service = service
        self._changed = threading.Condition()
        self._state = None
        self._due = 0

    def report(self, state):
        """Send this state instead of any former one."""
        with self._changed:
            self._state = state
            self._due += 1
            self._changed.notify_all()

    def repeat(self):
        """Send the newest state once more."""
        if self._state is not None:
            self.report(self._state)

    def run(self):
        """Send states forever."""
        taken, failures = 0, 0
        while True:
            self._wait_for_more_than(taken)
            with self._changed:
                due, state = self._due, self._state
            status = self._service.put(state)
            if 200 <= status < 300:
                taken, failures = due, 0
            else:
                failures += 1
                self._wait_for_more_than(due, timeout=pause_after(failures, status))

    def _wait_for_more_than(self, due, timeout=None):
        with self._changed:
            self._changed.wait_for(lambda: self._due > due, timeout)


def follow(service, reporter, events):
    """Follow the service's event stream forever, and put what it asks for into the queue of events."""

    def on_event(name, data):
        try:
            if name == "signal":
                request = json.loads(data)
                events.put(("signal", int(request["number"]), int(request["signum"])))
            elif name == "launch":
                events.put(("launch", int(json.loads(data)["number"])))
        except (ValueError, KeyError, TypeError):
            log(f"an event '{name}' of the service is not understood and ignored")

    failures = 0
    while True:
        # The service may have been restarted, so it is told the state after each connect.
        status, received = service.follow(reporter.repeat, on_event)
        failures = 1 if received else failures + 1
        time.sleep(pause_after(failures, status))


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
    service = Service(launch["url"], folder / "token")
    reporter = Reporter(service)
    with tempfile.TemporaryDirectory(prefix="kernel-") as private:
        path = os.path.join(private, "connection.json")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(connection, file)
        command = [word.replace("{connection_file}", path) for word in launch["command"]]
        threading.Thread(target=reporter.run, daemon=True).start()
        threading.Thread(target=follow, args=(service, reporter, events), daemon=True).start()
        return Supervisor(launch, command, events, reporter.report).run()


if __name__ == "__main__":
    sys.exit(main(Path(__file__).absolute().parent))
