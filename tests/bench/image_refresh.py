"""What it costs to know the 2,000 tags of a repository: questions to the registry, seconds, memory of the service.

    python tests/bench/image_refresh.py [--tags 2000] [--program FILE]

The registry is Debian's docker-registry on this machine. A proxy between it and the service counts the requests. The
reference is a client that asks the same registry for the same tags through the same proxy, eight at a time. It needs the
environment of `make test`.
"""

import itertools
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import psutil
import requests

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "deploy/local")]

from bench_arguments import arguments  # noqa: E402
from local_registry import LocalRegistry, taken_over_registry  # noqa: E402
from lone_service import LoneService  # noqa: E402
from world import eventually  # noqa: E402

REPOSITORY = "site/lab"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
AT_ONCE = 8


def main() -> None:
    """Measure, and print."""
    options = arguments(__doc__, "--tags", 2000, "how many tags the repository has")
    with tempfile.TemporaryDirectory() as folder, LocalRegistry(Path(folder) / "registry") as registry:
        tags = list(itertools.islice(daily(), options.tags))
        for tag in tags:
            registry.push_image(REPOSITORY, tag, tag)
        with counted(registry.address) as (address, requested):
            reference = ask_about(address, tags)
            print(f"reference: {len(tags)} tags asked about in {reference:.2f} s")
            measure(Path(folder), options.program, address, requested, reference)


def daily():
    """The tags of a site that builds every day."""
    for year, month, day in itertools.product(range(2010, 2100), range(1, 13), range(1, 29)):
        yield f"d_{year}_{month:02}_{day:02}"


@contextmanager
def counted(upstream: str):
    """A proxy to the registry; yields its address, and the number of requests by method."""
    requested, sessions = Counter(), threading.local()

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            requested[self.command] += 1
            if not hasattr(sessions, "session"):
                sessions.session = requests.Session()
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            answer = sessions.session.request(self.command, f"http://{upstream}{self.path}", headers=headers)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with taken_over_registry(Proxy) as address:
        yield address, requested


def ask_about(address: str, tags: list[str]) -> float:
    """Ask for the digest of each tag; returns the seconds that it takes."""
    sessions = threading.local()

    def ask(tag: str) -> None:
        if not hasattr(sessions, "session"):
            sessions.session = requests.Session()
        url = f"http://{address}/v2/{REPOSITORY}/manifests/{tag}"
        sessions.session.head(url, headers={"Accept": MANIFEST}).raise_for_status()

    begun = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(ask, tags))
    return time.monotonic() - begun


def measure(folder: Path, program: Path, address: str, requested: Counter, reference: float) -> None:
    """The first refresh, and one in which nothing has changed."""

    def adapt(config):
        config["registries"] = {"plain_http": [address]}
        config["images"] = {"repositories": [{"name": f"{address}/{REPOSITORY}"}], "refresh_every": "10s"}

    service = LoneService(folder, adapt)
    service.settings.program = program
    requested.clear()
    begun = time.monotonic()
    with service.running() as process:
        memory = psutil.Process(process.child.pid).memory_info
        refreshed = eventually(lambda: service.get("/images")["repositories"][0]["refreshed_at"], 300)
        took = time.monotonic() - begun
        print(f"first refresh, with the start of the service: {took:.2f} s, {took / reference:.1f} times the reference")
        print(f"  requests: {dict(requested)}; memory of the service: {memory().rss >> 20} MiB")
        requested.clear()
        eventually(lambda: service.get("/images")["repositories"][0]["refreshed_at"] != refreshed, 60)
        print(f"a refresh in which nothing has changed: {dict(requested)}; memory: {memory().rss >> 20} MiB")


if __name__ == "__main__":
    main()
