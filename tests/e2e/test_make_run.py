"""`make run` as a user runs it: ready soon, usable, and removed completely after Ctrl-C."""

import os
import re
import signal
import subprocess
import sys

import psutil
import pytest
import requests
from world import ROOT, Visitor, eventually, free_port

import compiled_policies
import stack
import toolchain


class Run:
    """A separate `make run` for one test."""

    def __init__(self, state, *target, **environment):
        compiled_policies.lend(state)
        self.ports = {"HUB_PORT": str(free_port()), "SPAWNER_PORT": str(free_port())}
        self.output = state.with_suffix(".log")
        with open(self.output, "w") as output:
            self.child = subprocess.Popen(
                ["make", "-s", *target],
                cwd=ROOT,
                env=os.environ | self.ports | {"STATE_DIR": str(state), "PYTHON": sys.executable} | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def take_user(self, name):
        """All users are this test's."""

    def text(self):
        return self.output.read_text()

    def ready(self):
        """Wait until the instructions are printed."""
        eventually(lambda: "Ctrl-C ends everything" in self.text() or self.child.poll() is not None, 900, self.text())
        assert self.child.poll() is None, self.text()

    def interrupt(self):
        """Send Ctrl-C as a terminal does: to the whole foreground group."""
        os.killpg(self.child.pid, signal.SIGINT)
        self.child.wait(60)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.ports['HUB_PORT']}"

    @property
    def password(self):
        """The password that is printed."""
        return re.search(r"the password\n\s+(\S+)\n", self.text())[1]


def of_state(state):
    """Processes with the state folder in their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(state) in word for word in [*process.cmdline(), *process.environ().values()]):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            pass
    return [process for process in found if process.pid != os.getpid()]


def compiled(state):
    """The machine code of policies in the state folder, and which file each is: one that is written again is another."""
    return {file.name: file.stat().st_ino for file in (state / "compiled-policies").iterdir()}


def test_make_run_can_be_used_interrupted_and_repeated(tmp_path):
    state = tmp_path / "state"
    run = Run(state, "run")
    try:
        run.ready()
        assert f"JupyterHub: {run.url}" in run.text()
        assert state.stat().st_mode & 0o777 == 0o700
        assert (state / "kubeconfig").stat().st_mode & 0o777 == 0o600
        visitor = Visitor(run, "ada")
        visitor.submit()
        assert visitor.progress()[-1][1].get("ready") is True
        # The printed command: curl with a token.
        program = re.search(r"\$\((\S+) token", run.text())[1]
        token = subprocess.check_output([program, "token", "--state-dir", state, "--admin"], text=True).strip()
        labs = requests.get(
            f"http://127.0.0.1:{run.ports['SPAWNER_PORT']}/spawner/v1/labs",
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
        )
        assert labs.json() == ["ada"]
    finally:
        run.interrupt()
    assert of_state(state) == []
    assert run.child.returncode in (0, 2, -signal.SIGINT), run.text()  # make itself returns 2 when interrupted
    assert "error" not in run.text().lower(), run.text()

    # The second time is short: nothing is compiled.
    before = compiled(state)
    run = Run(state, "run")
    try:
        run.ready()
        assert "Compiling" not in run.text(), run.text()
        assert compiled(state) == before != {}
    finally:
        run.interrupt()
    assert of_state(state) == []


def test_a_policy_of_one_s_own_is_in_the_spawn_form(tmp_path):
    """The steps of plugins/README.md, "A policy of your own"."""
    program = toolchain.target_dir() / "debug/wasmspawner"
    target = {"CARGO_NET_OFFLINE": "true", "CARGO_TARGET_DIR": str(toolchain.target_dir() / "tmp/own-policy")}
    for step in ("new", "build"):
        subprocess.run([program, "policy", step, tmp_path / "mine"], env=os.environ | target, check=True)
    run = Run(tmp_path / "state", "run", RUNTIME="simulated", POLICY=str(tmp_path / "mine"))
    try:
        run.ready()
        visitor = Visitor(run, "ada")
        page, fields = visitor.form()
        assert "1 CPU, 2 GiB" in page.text, page.text
        assert fields.values == {"size": "small"}
        # The lab has the size of the policy, and the image of the site.
        visitor.submit()
        show = [program, "labs", "show", "ada", "--state-dir", tmp_path / "state"]
        # JupyterHub may answer the form before it has asked the service for the lab.
        shown = eventually(
            lambda: subprocess.run(show, stdout=subprocess.PIPE, text=True).stdout, what="there is a lab"
        )
        assert "policy    3. own-mine" in shown, shown
        assert "minimal-notebook" in shown, shown
    finally:
        run.interrupt()
    assert of_state(tmp_path / "state") == []


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda folder: None, "does not exist; `wasmspawner policy new "),
        (lambda folder: folder.mkdir(), "has no component; `wasmspawner policy build "),
        (
            lambda folder: (folder.mkdir(), *((folder / f"{n}.wasm").touch() for n in "ab")),
            "several components (a.wasm, b.wasm)",
        ),
    ],
)
def test_a_policy_that_is_not_there_is_told_before_anything_slow_begins(tmp_path, make, told):
    make(tmp_path / "mine")
    run = Run(tmp_path / "state", "run", POLICY=str(tmp_path / "mine"))
    assert run.child.wait(60) != 0
    assert told in run.text(), run.text()


def test_make_serve_answers_the_curl_session_of_the_readme(tmp_path):
    state = tmp_path / "state"
    run = Run(state, "serve", RUNTIME="simulated")
    try:
        run.ready()
        api = f"http://127.0.0.1:{run.ports['SPAWNER_PORT']}/spawner/v1"
        program = re.search(r"\$\((\S+) token", run.text())[1]

        def token(*who):
            command = [program, "token", "--state-dir", state, *who]
            minted = subprocess.check_output(command, text=True).strip()
            return {"Authorization": f"Bearer {minted}"}

        ada = token("--user", "ada")
        body = {"options": {"image": "minimal", "size": "small"}}
        spawned = requests.post(f"{api}/labs/ada/spawn", json=body, headers=ada, timeout=30, allow_redirects=False)
        assert spawned.status_code == 303, spawned.text
        assert "event: complete" in requests.get(f"{api}/labs/ada/events", headers=ada, timeout=60).text
        assert requests.get(f"{api}/labs/ada", headers=ada, timeout=30).json()["status"] == "running"
        assert requests.get(f"{api}/labs", headers=token("--admin"), timeout=30).json() == ["ada"]
        assert requests.get(f"{api}/labs/ada", headers=token("--user", "bob"), timeout=30).status_code == 403
        wrong = {"Authorization": "Bearer wrong"}
        assert requests.get(f"{api}/labs/ada", headers=wrong, timeout=30).status_code == 401
        assert requests.delete(f"{api}/labs/ada", headers=ada, timeout=30).status_code == 202
    finally:
        run.interrupt()
    assert of_state(state) == []


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({"HUB_PORT": "eighty"}, "HUB_PORT is 'eighty'; it must be a port number"),
        ({"HUB_PASSWORD": " x"}, "HUB_PASSWORD must be printable"),
        ({"RUNTIME": "docker"}, "RUNTIME is 'docker'; it must be process or simulated"),
    ],
)
def test_a_wrong_setting_is_refused_at_once(tmp_path, setting, expected):
    run = Run(tmp_path / "state", "run", **setting)
    assert run.child.wait(60) != 0
    assert expected in run.text()


def test_the_error_about_a_port_in_use_names_it(tmp_path, world):
    port = str(world.settings.hub_port)
    run = Run(tmp_path / "state", "run", HUB_PORT=port)
    assert run.child.wait(60) != 0
    assert f"port {port} is in use; choose another with `make run HUB_PORT=...`" in run.text()


def test_a_slow_start_is_explained_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stack, "LONG", 0)
    process = stack.Process("service", tmp_path / "log", ["tail", "-f", "/dev/null"], tmp_path, dict(os.environ))
    is_ready = iter([False, False, False, True])
    process.wait_until(lambda: next(is_ready), 60, "it compiles")
    process.stop(5)
    assert capsys.readouterr().out == "    service is not ready yet: it compiles\n"
