"""What it costs that the workers of a Dask cluster are pods: the time until eight have computed, as a ratio to local ones.

    python tests/bench/dask_pool.py [--times 5] [--program FILE]

Measured are the time from the constructor to eight connected workers and a result of each, and from `scale(8)` of a
cluster with one worker to the same. The reference is `distributed.LocalCluster` with processes. Pods are processes of this
machine, so the ratio is what service, TLS and the keeper cost, without scheduler and container runtime. It needs the
environment of `make test`.
"""

import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "deploy/local"), str(ROOT / "sdk/python/src")]

from bench_arguments import arguments  # noqa: E402
from dask_site import DaskSite  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from distributed.deploy import Cluster  # noqa: E402
from world import eventually  # noqa: E402

from wasmspawner.dask import WasmSpawnerCluster  # noqa: E402

WORKERS = 8
BOUND = 120


def main() -> None:
    """Measure, and print."""
    options = arguments(__doc__, "--times", 5, "how many clusters of each kind are started")
    with tempfile.TemporaryDirectory() as folder:
        site = DaskSite(Path(folder))
        site.lone.settings.program = options.program
        with site.running():
            os.environ.update(site.environment())

            def local(number: int) -> Cluster:
                options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
                return LocalCluster(n_workers=number, threads_per_worker=1, **options)

            def pods(number: int) -> Cluster:
                return WasmSpawnerCluster(n_workers=number, quiet=True)

            def gone() -> None:
                """The next pool is not to compete with the former one's end."""
                eventually(lambda: not site.workers(), BOUND, "the workers are gone")

            # They take turns, so that both see the same machine.
            taken = [(measure(local, lambda: None), measure(pods, gone)) for _ in range(options.times)]
    for what in taken[0][0]:
        reference, own = (
            statistics.median(seconds[what] for seconds in of_kind) for of_kind in zip(*taken, strict=True)
        )
        print(f"{what:16} local {reference:6.3f} s, in pods {own:6.3f} s: {own / reference:.1f} times")


def measure(make: Callable[[int], Cluster], after: Callable[[], None]) -> dict[str, float]:
    """The seconds that each step took."""
    seconds = {}
    begun = time.monotonic()
    with make(WORKERS) as cluster, Client(cluster) as client:
        compute_everywhere(client)
        seconds[f"start {WORKERS}"] = time.monotonic() - begun
    after()
    with make(1) as cluster, Client(cluster) as client:
        client.wait_for_workers(1, timeout=BOUND)
        begun = time.monotonic()
        cluster.scale(WORKERS)
        compute_everywhere(client)
        seconds[f"scale 1 to {WORKERS}"] = time.monotonic() - begun
    after()
    return seconds


def compute_everywhere(client: Client) -> None:
    """Wait until all workers are connected, and have a result of each."""
    client.wait_for_workers(WORKERS, timeout=BOUND)
    assert len(client.run(os.getpid)) == WORKERS


if __name__ == "__main__":
    main()
