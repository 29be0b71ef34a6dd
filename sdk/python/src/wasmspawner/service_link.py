"""The connection of a pod's main program with the service: reports the newest state, follows what the service asks for.

The service mounts this file beside the program that uses it, so it needs nothing but the standard library of Python
3.8 or later. The program connects to the service; the service never connects to a pod.
"""

import contextlib
import http.client
import json
import random
import threading
import time
from urllib.parse import urlsplit

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
REQUEST_TIMEOUT = 15.0
# The service sends a comment every 15 seconds.
SILENCE_TIMEOUT = 60.0
LONGEST_LINE = 64 * 1024
_FAILURES = (OSError, http.client.HTTPException, ValueError)


def pause_after(failures, status):
    """Seconds until the next attempt, after failures in a row of which the last had this status (0: no answer)."""
    # The service may be restarting and not know this program yet, but these answers rarely change within a second.
    soon = status not in (401, 403, 404)
    pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE) if soon else LONGEST_PAUSE
    return pause * random.uniform(0.5, 1.0)  # not all pods at once


class Service:
    """The service's address for one program: a kernel's launcher, or the keeper of a pool of Dask workers.

    `path` is that of the program, below the `url` of what it reports on; `subject` names that in the log, and `log`
    prints a line. `http.client` follows no redirects and uses no proxies, so the token goes to the service alone.
    """

    def __init__(self, url, path, token_file, subject, log):
        self._url = urlsplit(url.rstrip("/") + path)
        self._token_file = token_file
        self._subject = subject
        self._log = log
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
        """Say in the log why the service does not take reports, once for each reason."""
        if trouble and trouble != self._trouble:
            self._log(f"the service at {self._url.netloc} cannot be told about the {self._subject}: {trouble}")
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
                    if field in ("event", "data"):
                        event[field] = value.lstrip(" ")  # the service writes the data of an event in one line
                    elif not field and not value and event:
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
            connection.request(method, self._url.path, body, headers)
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


def follow(service, on_open, on_event):
    """Follow the service's event stream forever.

    `on_open` is called after each connect, because the service may have been restarted and has to be told the state;
    `on_event` with the name and the data of each event.
    """
    failures = 0
    while True:
        status, received = service.follow(on_open, on_event)
        failures = 1 if received else failures + 1
        time.sleep(pause_after(failures, status))
