"""Runs the launcher as it runs in a pod: as a program, with its three files, against a small HTTP server."""

import ast
import json
import os
import queue
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from wasmspawner import kernel_launcher, service_link

SOURCE, LINK = Path(kernel_launcher.__file__), Path(service_link.__file__)
TOKEN, KEY = "the-secret-token", "the-secret-key"
BOUND = 20
CONNECTION = {"transport": "tcp", "ip": "0.0.0.0", "shell_port": 5001, "key": KEY, "signature_scheme": "hmac-sha256"}
# A kernel that prints what happens to it, and so does its child.
KERNEL = """
import os, signal, subprocess, sys, time
name = sys.argv[1]
def heard(signum, frame):
    os.write(1, f"{name} heard {signum}\\n".encode())  # `print` may be what was interrupted
signal.signal(signal.SIGINT, heard)
if name == "kernel":
    subprocess.Popen([sys.executable, "-S", __file__, "child", sys.argv[2]])
print(name, "reads", sys.argv[2], flush=True)
while True:
    time.sleep(60)
"""


class Service:
    """Records the states that it accepts, and sends the events that a test puts."""

    def __init__(self, tls=None):
        self.refusals = []  # statuses of the next answers to PUT
        self.seen = queue.Queue()
        self.events = queue.Queue()
        self.streams = 0
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self):
                assert self.path == "/spawner/v1/labs/ada/kernels/k1/launcher"
                state = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = fake.refusals.pop(0) if fake.refusals else 204
                fake.seen.put((self.headers["Authorization"], status, state, fake.streams))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self):
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                fake.streams += 1
                while (event := fake.events.get()) is not None:
                    self.wfile.write(f"{len(event):x}\r\n{event}\r\n".encode())
                self.close_connection = True

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.server.handle_error = lambda *args: None  # a launcher that ends leaves its connections
        # The interval is that in which it looks whether it is to end, for which each test waits.
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/spawner/v1/labs/ada/kernels/k1"

    def send(self, name, **data):
        self.events.put(f": a comment\n\nevent: {name}\ndata: {json.dumps(data)}\n\n")

    def until(self, *, streams=0, **expected):
        """Wait until this state was accepted, at a time when so many streams have been opened."""
        while True:
            authorization, status, state, opened = self.seen.get(timeout=BOUND)
            assert authorization == f"Bearer {TOKEN}"
            if status < 300 and state == expected and opened >= streams:
                return

    def close(self):
        self.events.put(None)
        self.server.shutdown()
        self.server.server_close()


class Pod:
    """A running launcher and what it and its kernel print."""

    def __init__(self, folder, command, prefix=(), **launch):
        self.service = Service()
        folder.mkdir(exist_ok=True)
        shutil.copy(SOURCE, folder / "launcher.py")
        shutil.copy(LINK, folder)
        launch = {"url": self.service.url, "command": command, "env": {}, "working_dir": None, **launch}
        (folder / "launch.json").write_text(json.dumps({"linger_seconds": 60, "stop_seconds": 60, **launch}))
        (folder / "connection.json").write_text(json.dumps(CONNECTION))
        (folder / "token").write_text(TOKEN + "\n")
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-I", "-S", str(folder / "launcher.py")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": os.environ["PATH"], "POD_IP": "10.1.2.3", "http_proxy": "http://127.0.0.1:1"},
        )
        self.printed = []
        self._lines = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.printed.append(line)
            self._lines.put(line.strip())

    def until_printed(self, *expected):
        """Wait until all these lines were printed, in any order; a line may be given by its beginning."""
        missing = list(expected)
        while missing:
            line = self._lines.get(timeout=BOUND)
            missing = [wanted for wanted in missing if not line.startswith(wanted)]
        return line

    def exit_code(self):
        return self.process.wait(timeout=BOUND)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=BOUND)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join(timeout=BOUND)
            self.process.stdout.close()
            self.service.close()


@pytest.fixture
def pod(tmp_path):
    pods = []

    def start(*command, **launch):
        pods.append(Pod(tmp_path / "launcher", list(command), **launch))
        return pods[-1]

    yield start
    for started in pods:
        started.close()
        printed = "".join(started.printed)
        assert TOKEN not in printed
        assert KEY not in printed


@pytest.fixture
def kernel(tmp_path):
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL)
    return [sys.executable, "-S", str(script), "kernel", "{connection_file}"]


def run(code, *arguments):
    return [sys.executable, "-S", "-c", code, *arguments]


def test_the_kernel_gets_its_connection_file_variables_and_folder(pod, tmp_path):
    code = (
        "import json, os, sys; path = sys.argv[1]\n"
        "print(json.dumps([json.load(open(path))['ip'], oct(os.stat(path).st_mode & 0o777),"
        " oct(os.stat(os.path.dirname(path)).st_mode & 0o777), os.environ['COLOUR'], os.getcwd(),"
        " os.getpgrp() == os.getpid(), sys.stdin.read()]))"
    )
    running = pod(*run(code, "{connection_file}"), env={"COLOUR": "green"}, working_dir=str(tmp_path), linger_seconds=0)
    line = running.until_printed("[")
    assert json.loads(line) == ["10.1.2.3", "0o600", "0o700", "green", str(tmp_path), True, ""]
    assert running.exit_code() == 0


def test_a_missing_folder_is_reported_and_the_kernel_starts_all_the_same(pod):
    running = pod(*run("print('started')"), working_dir="/no/such/folder", linger_seconds=0)
    running.until_printed("kernel launcher: the folder /no/such/folder does not exist", "started")


@pytest.mark.parametrize(
    ("code", "reported", "exit_code"),
    [
        ("", 0, 0),
        ("raise SystemExit(3)", 3, 1),
        ("import os; os.kill(os.getpid(), 9)", -9, 1),
    ],
    ids=["success", "failure", "signal"],
)
def test_the_end_of_the_process_is_reported_and_ends_the_pod(pod, code, reported, exit_code):
    pod(*run(code)).service.until(number=1, state="ended", exit_code=reported)
    assert pod(*run(code), linger_seconds=0.1).exit_code() == exit_code


def test_a_program_that_does_not_exist_has_ended_with_127(pod):
    running = pod("/no/such/program")
    running.service.until(number=1, state="ended", exit_code=127)
    running.until_printed("kernel launcher: cannot start the kernel's program /no/such/program: ")
    assert pod("/no/such/program", linger_seconds=0.1).exit_code() == 1


def test_a_signal_reaches_the_process_and_its_children(pod, kernel):
    running = pod(*kernel)
    running.until_printed("kernel reads", "child reads")
    running.service.send("signal", number=2, signum=int(signal.SIGKILL))  # of a process that is not the current one
    running.service.send("signal", number=1, signum=int(signal.SIGINT))
    running.until_printed("kernel heard 2", "child heard 2")


def test_a_launch_replaces_the_process_and_keeps_the_connection_file(pod, kernel):
    running = pod(*kernel)
    first = running.until_printed("kernel reads")
    running.service.until(number=1, state="running")
    running.service.send("launch", number=1)  # the process that runs already
    running.service.send("unknown", number=9)
    running.service.send("launch", number="none")
    running.service.send("launch", number=4)
    running.service.until(number=4, state="running")
    assert running.until_printed("kernel reads") == first
    assert first.endswith("connection.json")


def test_a_launch_after_the_end_starts_the_process_again(pod, tmp_path):
    running = pod(*run("print('started'); raise SystemExit(5)"))
    running.service.until(number=1, state="ended", exit_code=5)
    running.service.send("launch", number=2)
    running.service.until(number=2, state="ended", exit_code=5)
    running.until_printed("started")
    running.until_printed("started")


def test_a_state_is_repeated_until_the_service_takes_it_and_then_only_the_newest(tmp_path, pod):
    running = pod(*run("import sys; sys.stdin.read(); print('over')"))
    running.service.refusals += [503, 500, 502]
    running.service.until(number=1, state="ended", exit_code=0)
    later = [state["state"] for _, _, state, _ in list(running.service.seen.queue)]
    assert "running" not in later


def test_a_new_stream_repeats_the_state(pod, kernel):
    running = pod(*kernel)
    running.until_printed("kernel reads")  # a signal that comes sooner would end it
    running.service.until(number=1, state="running")
    running.service.send("ping")
    running.service.events.put(None)  # the stream breaks
    running.service.until(streams=2, number=1, state="running")
    running.service.send("signal", number=1, signum=int(signal.SIGINT))
    running.until_printed("kernel heard 2")
    assert running.service.streams >= 2


def test_events_that_are_not_understood_are_ignored(pod, kernel):
    running = pod(*kernel)
    running.until_printed("kernel reads")
    events = running.service.events
    for data in ("[" * 60_000, '{"number": 1e999}', "9" * 5000, "null", ""):
        events.put(f"event: launch\ndata: {data}\n\n")
    running.service.send("signal", number=1, signum=int(signal.SIGINT))
    running.until_printed("kernel heard 2")
    assert running.service.streams == 1


def test_the_end_of_the_pod_ends_the_process_group(pod, kernel):
    running = pod(*kernel)
    running.until_printed("kernel reads", "child reads")
    running.process.terminate()
    assert running.exit_code() == 0


def test_a_process_that_ignores_the_end_is_killed(pod):
    code = "import signal; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
    running = pod(*run(code), stop_seconds=0.1)
    running.until_printed("ready")
    running.process.terminate()
    assert running.exit_code() == 0


def test_as_process_1_the_launcher_reaps_orphans(pod):
    namespace = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*namespace, "true"], check=False).returncode:
        pytest.skip("this machine does not let users make a PID namespace")
    code = (
        "import os, signal, time\n"
        "reader, writer = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    orphan = os.fork()\n"
        "    if orphan == 0: signal.pause()\n"
        "    os.write(writer, str(orphan).encode())\n"
        "    os._exit(0)\n"
        "orphan = int(os.read(reader, 20))\n"
        "os.wait()\n"
        "print('parent', open(f'/proc/{orphan}/stat').read().split()[3], flush=True)\n"
        "os.kill(orphan, signal.SIGKILL)\n"
        "while os.path.exists(f'/proc/{orphan}'): time.sleep(0.01)\n"
        "print('reaped', flush=True)\n"
    )
    running = pod(*run(code), prefix=namespace, linger_seconds=0)
    running.until_printed("parent 1")
    running.until_printed("reaped")
    assert running.exit_code() == 0


def test_pauses_grow_up_to_five_seconds_and_are_long_where_the_service_refuses(monkeypatch):
    monkeypatch.setattr(service_link.random, "uniform", lambda low, high: high)
    assert [service_link.pause_after(n, 503) for n in (1, 2, 3, 7, 100)] == [0.1, 0.2, 0.4, 5.0, 5.0]
    assert [service_link.pause_after(1, status) for status in (401, 403, 404, 0)] == [5.0, 5.0, 5.0, 0.1]


def test_the_token_goes_to_an_ingress_with_a_known_certificate_alone(tmp_path, monkeypatch):
    """Behind an ingress the service has the ingress's URL. A pod knows the authorities of its image."""
    authority, tls = certificate(tmp_path)
    fake = Service(tls)
    (tmp_path / "token").write_text(TOKEN)
    url, said = fake.url.replace("http://127.0.0.1", "https://localhost"), []
    service = service_link.Service(url, "/launcher", tmp_path / "token", "kernel", said.append)
    try:
        assert service.put({"number": 1}) == 0
        assert "certificate" in said[0]
        assert fake.seen.empty()
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert service.put({"number": 1}) == 204
    finally:
        fake.close()


def certificate(folder):
    """The file of a certificate for localhost, and the settings of a server that has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file, secret = folder / "certificate.pem", folder / "key.pem"
    file.write_bytes(made.public_bytes(pem))
    unlocked = serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, unlocked))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file, secret)
    return file, tls


@pytest.mark.parametrize("file", ["kernel_launcher", "service_link", "dask_pod"])
def test_mounted_files_need_only_the_standard_library_of_python_3_8(file):
    tree = ast.parse(SOURCE.with_name(f"{file}.py").read_text(), feature_version=(3, 8))
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module.partition(".")[0])
    assert modules <= set(sys.stdlib_module_names) | {"service_link"}
