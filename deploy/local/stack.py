"""The processes of the one-machine setup: the service, and the Hub (which starts the proxy)."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from own_policy import OwnPolicy

import site_config
from toolchain import LOCAL, ROOT

# Seconds within which the service is ready. It compiles the policies that it has not seen before: one in Python takes a
# minute on a slow machine.
START = 300
# Seconds after which somebody who waits is told why.
LONG = 15
COMPILES = "it compiles policies that are new to it; one in Python or JavaScript can take a minute"


class NotReady(Exception):
    """A process ended or was not ready in time. The message contains the end of its log."""


@dataclass
class Settings:
    """Paths and ports of the setup. `adapt` may change the service's configuration before it is written."""

    state: Path
    program: Path
    venv: Path
    hub_port: int = 8000
    spawner_port: int = 8090
    runtime: str = "process"
    keep_labs: bool = False
    adapt: Callable[[dict], None] = lambda config: None
    tokens: dict[tuple[str, ...], str] = field(default_factory=dict)
    hub_config: Path = LOCAL / "jupyterhub_config.py"
    hub: bool = True  # without it, the service knows static tokens only
    own_policy: OwnPolicy | None = None
    password: str = ""  # of all users; empty: the one of the last run, or a random one
    hub_internal_port: int = 0  # the Hub's own port; 0: the one of the last run if it is free, or another that is

    @property
    def api_url(self) -> str:
        """The URL of the service's API, without its version."""
        return f"http://127.0.0.1:{self.spawner_port}/spawner/v1"

    @property
    def hub_url(self) -> str:
        """The URL to open in a browser."""
        return f"http://127.0.0.1:{self.hub_port}"

    @property
    def hub_token_file(self) -> Path:
        """The file with the token that the Hub presents to the service."""
        return self.state / "hub.token"

    @property
    def service_token_file(self) -> Path:
        """The file with the token that the service presents to the Hub."""
        return self.state / "service-at-hub.token"

    @property
    def password_file(self) -> Path:
        """The file with the password of the Hub's users."""
        return self.state / "hub.password"


class Process:
    """A child process in a session of its own, so that Ctrl-C does not reach it directly. Its output goes to a log
    file."""

    def __init__(self, name: str, log: Path, command: list[str | Path], cwd: Path, env: dict[str, str]) -> None:
        self.name, self.log = name, log
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            self.child = subprocess.Popen(
                [str(part) for part in command],
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until(self, ready, seconds: float, reason: str = "") -> None:
        """Wait until `ready()` is true, and say the reason if that takes long. Raises `NotReady`."""
        begun = time.monotonic()
        give_up = begun + seconds
        while not ready():
            if self.child.poll() is not None:
                raise NotReady(
                    f"{self.name} ended with {self.child.returncode}; its log {self.log} ends:\n{self.tail()}"
                )
            if time.monotonic() > give_up:
                raise NotReady(
                    f"{self.name} was not ready within {seconds:.0f} s; its log {self.log} ends:\n{self.tail()}"
                )
            if reason and time.monotonic() > begun + LONG:
                print(f"    {self.name} is not ready yet: {reason}", flush=True)
                reason = ""
            time.sleep(0.05)

    def tail(self, lines: int = 15) -> str:
        """The last lines of the log."""
        return "\n".join("    " + line for line in self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, seconds: float, how: signal.Signals = signal.SIGTERM) -> None:
        """Ask the process to end, and kill it if it does not."""
        if self.child.poll() is None:
            self.child.send_signal(how)
            try:
                self.child.wait(seconds)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def answers(url: str, token: str = "") -> bool:
    """True if a request for the URL succeeds."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=2) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError, http.client.HTTPException):
        return False


def serve_command(settings: Settings) -> list[str | Path]:
    """The service's command line. Also writes its configuration."""
    near = settings.spawner_port
    config = site_config.service_config(
        state=settings.state,
        venv=settings.venv,
        port=near,
        health_port=_remembered_port(settings.state / "health.port", near + 1),
        cluster_port=_remembered_port(settings.state / "cluster.port", near + 2),
        runtime=settings.runtime,
        keep_labs=settings.keep_labs,
        hub_port=_hub_internal_port(settings) if settings.hub else 0,
        service_token_file=_service_token(settings),
    )
    settings.adapt(config)
    (settings.state / "homes").mkdir(mode=0o700, exist_ok=True)
    file = site_config.write(config, settings.state / "wasmspawner.yaml")
    # `--local` adds the one-machine cluster unless the configuration has that section.
    local = ["--local"] if "embedded" in config else []
    return [settings.program, "serve", *local, "--state-dir", settings.state, "--config", file]


def token(settings: Settings, *who: str) -> str:
    """A token that the service accepts: `--hub`, `--admin` or `--user NAME`. Each is created only once."""
    if who not in settings.tokens:
        command = [settings.program, "token", "--state-dir", settings.state, *who]
        settings.tokens[who] = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return settings.tokens[who]


def start_service(settings: Settings) -> Process:
    """Start the service and wait until it is ready."""
    service = launch_service(settings)
    await_service(settings, service)
    return service


def launch_service(settings: Settings) -> Process:
    """Start the service, which needs at least one token."""
    command = serve_command(settings)
    _write_hub_token(settings, "")
    # glibc keeps free memory for each thread. With a single arena the service needs 40 MiB less with a thousand labs.
    env = {"MALLOC_ARENA_MAX": "1"} | os.environ
    return Process("wasmspawner", settings.state / "logs/service.log", command, ROOT, env)


def await_service(settings: Settings, service: Process) -> None:
    """Wait until the service is ready."""
    health_port = (settings.state / "health.port").read_text()
    try:
        service.wait_until(lambda: answers(f"http://127.0.0.1:{health_port}/readyz"), START, COMPILES)
    except BaseException:
        service.stop(5)
        raise


def start_hub(settings: Settings, hub_token: str = "") -> Process:
    """Start JupyterHub and wait until it answers through its proxy."""
    hub = launch_hub(settings, hub_token)
    await_hub(settings, hub)
    return hub


def launch_hub(settings: Settings, hub_token: str = "") -> Process:
    """Start JupyterHub. It need not wait for the service, because it repeats requests that fail."""
    home = settings.state / "hub"
    home.mkdir(mode=0o700, exist_ok=True)
    _write_hub_token(settings, hub_token)
    hub_password(settings)
    env = dict(os.environ)
    env.update(
        PATH=f"{settings.venv}:{env.get('PATH', os.defpath)}",
        PYTHONPATH=str(ROOT / "sdk/python/src"),
        HUB_PORT=str(settings.hub_port),
        HUB_INTERNAL_PORT=str(_hub_internal_port(settings)),
        HUB_PROXY_PORT=str(_remembered_port(home / "proxy.port")),
        WASMSPAWNER_API_URL=settings.api_url,
        WASMSPAWNER_TOKEN_FILE=str(settings.hub_token_file),
        HUB_PASSWORD_FILE=str(settings.password_file),
        SERVICE_TOKEN_FILE=str(_service_token(settings)),
        KEEP_LABS="1" if settings.keep_labs else "",
    )
    command = [settings.venv / "jupyterhub", "-f", settings.hub_config]
    return Process("jupyterhub", settings.state / "logs/hub.log", command, home, env)


def await_hub(settings: Settings, hub: Process) -> None:
    """Wait until JupyterHub answers through its proxy."""
    internal_port = _hub_internal_port(settings)
    try:
        # Wait for the Hub itself first: the proxy answers earlier, and logs an error for each request to the Hub.
        hub.wait_until(lambda: answers(f"http://127.0.0.1:{internal_port}/hub/health"), 60)
        hub.wait_until(lambda: answers(f"{settings.hub_url}/hub/health"), 60)
    except BaseException:
        hub.stop(15)
        raise


def hub_password(settings: Settings) -> str:
    """The password with which every user logs in: the given one, that of the last run, or a random one."""
    file = settings.password_file
    if settings.password or not file.exists():
        _write_private(file, settings.password or secrets.token_urlsafe(9))
    return file.read_text().strip()


def _write_hub_token(settings: Settings, given: str) -> None:
    file = settings.hub_token_file
    if not given and file.exists() and (settings.state / "tokens.yaml").exists():
        return  # the one of the last run
    _write_private(file, given or token(settings, "--hub"))


def _write_private(file: Path, line: str) -> None:
    """Write a file that only its owner can read."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as output:
        output.write(line + "\n")


def _service_token(settings: Settings) -> Path:
    """The file with the service's token for the Hub, which both read; created once."""
    file = settings.service_token_file
    if not file.exists():
        _write_private(file, secrets.token_hex(32))
    return file


def _hub_internal_port(settings: Settings) -> int:
    """The Hub's own port, which the service has to know before the Hub is started."""
    if not settings.hub_internal_port:
        file = settings.state / "hub/internal.port"
        file.parent.mkdir(mode=0o700, exist_ok=True)
        settings.hub_internal_port = _remembered_port(file)
    return settings.hub_internal_port


def _remembered_port(file: Path, preferred: int = 0) -> int:
    """A free port, the same as in the last run if possible, because labs that outlive the Hub have its address."""
    known = int(file.read_text()) if file.exists() else preferred
    port = known if known and is_free(known) else free_port()
    file.write_text(str(port))
    return port


def free_port() -> int:
    """A loopback port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_free(port: int) -> bool:
    """True if no process listens on the loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def stop_all_labs(settings: Settings, seconds: float) -> None:
    """Stop labs that the Hub does not know (started with curl, for example), so that the next run starts without
    labs."""
    headers = {"Authorization": f"Bearer {token(settings, '--admin')}", "X-Requested-With": "stop_all_labs"}

    def ask(method: str, path: str):
        request = urllib.request.Request(settings.api_url + path, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=5) as response:
            return json.loads(response.read() or b"null")

    stopping = set()
    for user in ask("GET", "/labs?status=running&status=starting"):
        with suppress(urllib.error.HTTPError):  # being stopped already, or named servers only
            ask("DELETE", f"/labs/{urllib.parse.quote(user, safe='')}")
            stopping.add(user)
    give_up = time.monotonic() + seconds
    while stopping.intersection(ask("GET", "/labs?status=all")) and time.monotonic() < give_up:
        time.sleep(0.2)
