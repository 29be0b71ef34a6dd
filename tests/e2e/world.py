"""The one-machine setup for the tests: its processes, its Hub's API, and a user with a simple HTTP client."""

import json
import os
import re
import secrets
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, urljoin

import cluster_api
import psutil
import requests

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "deploy/local"), str(ROOT / "tests")]

import compiled_policies  # noqa: E402
import stack  # noqa: E402
import toolchain  # noqa: E402

free_port = stack.free_port
BROKEN_IMAGE = "example.org/broken:1"
OTHER_IMAGE, OTHER_PORT = "example.org/not-jupyter:1", 9123
# A web server that answers with the path that it was asked for.
OTHER_PROGRAM = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Echo(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"not Jupyter: " + self.path.encode())

HTTPServer((sys.argv[1], int(sys.argv[2])), Echo).serve_forever()
"""
# The same, once this file of the test's folder exists; and a program that ends with 3 once the other file exists.
LATE_IMAGE, LATE_FILE = "example.org/late:1", "late"
ENDING_IMAGE, ENDING_FILE = "example.org/ending:1", "ending"
# A user whose token in `auth_state` the service does not know any more.
EXPIRED_USER = "katya"
SUSPENDED_USER = "mallory"
COURSE = "course"
# The groups whose members administer labs. JupyterHub lets the staff into all servers, and helpers into none.
STAFF, HELPERS = "staff", "helpers"


def eventually(condition, seconds=60.0, what="the condition"):
    """The condition's first true value. Fails after `seconds`."""
    give_up = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < give_up, f"{what} did not hold within {seconds} s"
        time.sleep(0.1)
    return value


def adapt(config, state):
    """Add images that end, that are not Jupyter and that start late, a volume claim for each server, and a user without access."""
    config["embedded"]["images"].insert(
        0, {"match": BROKEN_IMAGE, "command": ["/bin/sh", "-c", "exit 3"], "pod_command": "ignored"}
    )
    other = [sys.executable, "-c", OTHER_PROGRAM]
    late = ["/bin/sh", "-c", f'until [ -e {state}/{LATE_FILE} ]; do sleep 0.1; done; exec "$@"', "sh", *other]
    end = f'"$@" & until [ -e {state}/{ENDING_FILE} ]; do sleep 0.1; done; kill $!; exit 3'
    ending = ["/bin/sh", "-c", end, "sh", *other]
    for image, command in ((OTHER_IMAGE, other), (LATE_IMAGE, late), (ENDING_IMAGE, ending)):
        config["embedded"]["images"].insert(
            0, {"match": image, "command": command, "args": ["{pod_ip}", "{port}"], "pod_command": "ignored"}
        )
    config["policies"][0]["grants"]["ports"] = [OTHER_PORT]
    default = config["policies"][0]["config"]
    default["images"] = [
        *default["images"],
        {"name": "broken", "label": "Broken", "reference": BROKEN_IMAGE},
        {"name": "other", "reference": OTHER_IMAGE, "port": OTHER_PORT, "probe": {"http": "/health"}},
        {"name": "late", "reference": LATE_IMAGE, "port": OTHER_PORT, "probe": {"http": "/health"}},
        {"name": "ending", "reference": ENDING_IMAGE, "port": OTHER_PORT, "probe": {"http": "/health"}},
    ]
    # For the members of one group, so that the form of all others is that of `make run`.
    config["blueprints"] = {
        "site": {
            "base": {"platform": True, "groups": [COURSE], "env": {"COURSE_BASE": "1"}},
            "course": {
                "displayName": "The course",
                "groups": [COURSE],
                "env": {"COURSE": "physics"},
            },
        }
    }
    config["hub"]["forgotten"] = {"min_age": "1s"}
    # A pause grows with each restart, and the second one ends a lab here.
    config.setdefault("limits", {})["running_restarts"] = 1
    config["auth"]["jupyterhub"]["groups"] = {group: ["admin:notebook"] for group in (STAFF, HELPERS)}
    # A claim for each server, which is deleted with it.
    config["kubernetes"] = {"namespaces": "retain"}
    claim = {"name": "{pvc_name}", "create": {"storage": "1Gi", "on_server_deletion": "delete"}}
    default["volumes"] = [*default["volumes"], {"name": "data", "claim": claim}]
    default["mounts"] = [*default["mounts"], {"volume": "data", "path": "/data"}]
    default["authorize"] = {"deny_users": [SUSPENDED_USER], "message": "Your access has ended. Ask the help desk."}


@dataclass
class World:
    """The running setup."""

    settings: stack.Settings
    hub_token: str = field(default_factory=lambda: secrets.token_hex(16))
    service: stack.Process | None = None
    hub: stack.Process | None = None
    # For a world that tests share: a folder with a file for each user, which says whose test's user that is.
    users: Path | None = None

    @classmethod
    def at(cls, folder: Path) -> "World":
        settings = stack.Settings(
            state=folder,
            program=toolchain.target_dir() / "debug/wasmspawner",
            venv=Path(sys.executable).parent,
            hub_port=free_port(),
            spawner_port=free_port(),
            keep_labs=True,
            adapt=lambda config: adapt(config, folder),
            hub_config=Path(__file__).parent / "jupyterhub_config.py",
        )
        return cls(settings)

    @contextmanager
    def running(self):
        """The time in which service and Hub run."""
        try:
            self.start_service()
            self.start_hub()
            yield self
        finally:
            self.close()

    def take_user(self, name):
        """Fail if the user belongs to another test of this world, whose labs may still run."""
        if not self.users:
            return
        test = os.environ["PYTEST_CURRENT_TEST"].partition(" (")[0].partition("[")[0]
        note = self.users / quote(name, safe="@")
        with suppress(FileExistsError), note.open("x") as created:
            created.write(test)
        owner = note.read_text()
        assert owner == test, f"the user {name!r} is that of {owner}; each test has users of its own"

    def start_service(self):
        self.service = compiled_policies.start_service(self.settings)

    def start_hub(self):
        os.environ.update(
            BASE_CONFIG=str(toolchain.LOCAL / "jupyterhub_config.py"),
            E2E_TOKEN=self.hub_token,
            EXPIRED_USER=EXPIRED_USER,
            JUPYTERHUB_CRYPT_KEY=self.hub_token * 2,
        )
        self.hub = stack.start_hub(self.settings)

    def stop_service(self):
        self.service.stop(15)

    def stop_hub(self):
        self.hub.stop(30)

    def close(self):
        if self.service and self.service.child.poll() is None:
            stack.stop_all_labs(self.settings, 30)
        if self.hub:
            self.stop_hub()
        if self.service:
            self.stop_service()

    def forgotten(self):
        """The result of `wasmspawner labs forgotten`: its exit code, its list, and its standard error."""
        command = [self.settings.program, "labs", "forgotten", "--json", "--state-dir", self.settings.state]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        report = json.loads(ended.stdout) if ended.returncode == 0 else None
        names = [(lab["username"], lab["server"]) for lab in report["forgotten"]] if report else None
        return ended.returncode, names, ended.stderr

    def delete_from_hub_database(self, user, server):
        """Delete a server from the Hub's database, as a restored backup would. The Hub must not be running."""
        database = sqlite3.connect(self.settings.state / "hub/jupyterhub.sqlite")
        with database:
            found = database.execute(
                "SELECT spawners.id, server_id FROM spawners JOIN users ON users.id = user_id "
                "WHERE users.name = ? AND spawners.name = ?",
                (user, server),
            ).fetchone()
            database.execute("DELETE FROM spawners WHERE id = ?", found[:1])
            database.execute("DELETE FROM servers WHERE id = ?", found[1:])
        database.close()

    def after_polls(self):
        """Wait until the Hub has polled all labs at least once more."""
        port = (self.settings.state / "health.port").read_text()

        def polls():
            text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=30).text
            counts = re.findall(r'^wasmspawner_http_requests_total\{.*/lab-status".*} ([0-9]+)$', text, re.MULTILINE)
            return sum(map(int, counts))

        before = polls()
        eventually(lambda: polls() > before + 1, what="the Hub polls")

    def stop_lab(self, user, server=""):
        """Stop a lab at the service, as an administrator."""
        path = f"/labs/{quote(user, safe='')}" + (f"/servers/{quote(server, safe='')}" if server else "")
        headers = {"Authorization": f"Bearer {stack.token(self.settings, '--admin')}"}
        requests.delete(self.settings.api_url + path, headers=headers, timeout=30).raise_for_status()

    def processes(self, user):
        """The processes of a user's labs in this cluster, with their variables."""
        state = str(self.settings.state)
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                variables = process.environ()
                if variables.get("JUPYTERHUB_USER") == user and any(state in each for each in variables.values()):
                    yield process, variables

    def token_of_lab(self, user):
        """The token of JupyterHub that a user's running lab has."""
        _, variables = next(self.processes(user))
        return variables["JUPYTERHUB_API_TOKEN"]

    def claims(self, user):
        """The names of a user's volume claims in the cluster."""
        path = f"/api/v1/persistentvolumeclaims?labelSelector=wasmspawner.io/user={user}"
        return {claim["metadata"]["name"] for claim in self.ask_cluster("GET", path).json()["items"]}

    def ask_cluster(self, method: str, path: str, **options) -> requests.Response:
        """A request to the cluster's own API, which has to succeed."""
        return cluster_api.ask(self.settings.state, method, path, **options)

    @property
    def url(self):
        return self.settings.hub_url

    @property
    def password(self):
        return stack.hub_password(self.settings)

    def hub_api(self, method, path, **options):
        """Call the Hub's REST API as the service of the tests."""
        headers = {"Authorization": f"token {self.hub_token}"}
        answer = requests.request(
            method, f"{self.settings.hub_url}/hub/api{path}", headers=headers, timeout=60, **options
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def lab(self, user, server=""):
        """The lab as the service reports it; None if there is none."""
        path = f"/labs/{quote(user, safe='')}" + (f"/servers/{quote(server, safe='')}" if server else "")
        headers = {"Authorization": f"Bearer {stack.token(self.settings, '--admin')}"}
        answer = requests.get(self.settings.api_url + path, headers=headers, timeout=30)
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        return answer.json()

    def kernels(self, user):
        """What the service says about the kernels of a user's lab."""
        headers = {"Authorization": f"Bearer {stack.token(self.settings, '--admin')}"}
        answer = requests.get(f"{self.settings.api_url}/labs/{user}/kernels", headers=headers, timeout=30)
        answer.raise_for_status()
        return answer.json()

    def servers(self, user):
        """The user's servers as the Hub reports them."""
        return self.hub_api("GET", f"/users/{quote(user, safe='')}")["servers"]

    def lab_status(self, user, server=""):
        """`/api/status` of the real lab, through the Hub's proxy; None if it does not answer."""
        path = f"/user/{quote(user, safe='@')}/" + (f"{server}/" if server else "")
        answer = requests.get(
            f"{self.url}{path}api/status", headers={"Authorization": f"token {self.hub_token}"}, timeout=30
        )
        return answer.json() if answer.ok and "kernels" in answer.text else None


class _Fields(HTMLParser):
    """The fields that a browser would submit for an unchanged form."""

    def __init__(self):
        super().__init__()
        self.values, self.choices, self._select = {}, {}, None

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        name = attributes.get("name")
        if tag == "select":
            self._select = name
        elif tag == "option" and self._select:
            self.choices.setdefault(self._select, []).append(attributes.get("value"))
            if "selected" in attributes or self._select not in self.values:
                self.values[self._select] = attributes.get("value")
        elif tag == "input" and name:
            kind = attributes.get("type", "text")
            if kind in ("radio", "checkbox"):
                self.choices.setdefault(name, []).append(attributes.get("value", "on"))
                if "checked" in attributes:
                    self.values[name] = attributes.get("value", "on")
            else:
                self.values[name] = attributes.get("value", "")

    def handle_endtag(self, tag):
        if tag == "select":
            self._select = None


class Visitor:
    """A user with cookies who reads pages and submits forms."""

    def __init__(self, world, name, password=""):
        world.take_user(name)
        self.world, self.name = world, name
        self.session = requests.Session()
        page = self.session.get(f"{world.url}/hub/login", timeout=30)
        page.raise_for_status()
        answer = self.session.post(
            f"{world.url}/hub/login",
            data={
                "username": name,
                "password": password or world.password,
                "_xsrf": self.session.cookies.get("_xsrf", path="/hub/"),
            },
            timeout=60,
            allow_redirects=False,
        )
        assert answer.status_code == 302, answer.text

    @property
    def _spawn_url(self):
        return f"{self.world.url}/hub/spawn/{quote(self.name, safe='@')}"

    def form(self, server=""):
        """Open the spawn page. Returns it and the fields that it would submit."""
        page = self.session.get(self._spawn_url + (f"/{server}" if server else ""), timeout=30)
        fields = _Fields()
        fields.feed(page.text[page.text.index("spawn_form") :] if page.ok else "")
        return page, fields

    def submit(self, server="", **choices):
        """Submit the form with these choices. Returns the page that follows."""
        page, fields = self.form(server)
        page.raise_for_status()
        start = page.text.index("action=", page.text.index("spawn_form")) + len('action="')
        action = page.text[start : page.text.index('"', start)].replace("&amp;", "&")
        return self.session.post(urljoin(page.url, action), data=fields.values | choices, timeout=60)

    def progress(self, server=""):
        """The progress events of a pending spawn as the page receives them, each with its time."""
        path = f"/hub/api/users/{quote(self.name, safe='@')}/server" + (f"s/{server}" if server else "") + "/progress"
        headers = {"Accept": "text/event-stream", "Referer": f"{self.world.url}/hub/"}
        events = []
        xsrf = self.session.cookies.get("_xsrf", path="/hub/")
        with self.session.get(
            self.world.url + path, params={"_xsrf": xsrf}, headers=headers, stream=True, timeout=120
        ) as answer:
            answer.raise_for_status()
            for line in answer.iter_lines():
                if line.startswith(b"data: "):
                    events.append((time.monotonic(), json.loads(line[6:])))
        return events
