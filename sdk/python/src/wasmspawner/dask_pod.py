"""The main program of a pod of a Dask pool: becomes the pool's scheduler, or one of its workers.

The service mounts this file into the pod and runs `python3 -I dask_pod.py scheduler` or `... worker`. It needs nothing
but the standard library of Python 3.8 or later, and finds its input beside itself: `pool.json`, `tls.crt`, `tls.key`.
All processes load `dask_tls.py` from there, and the scheduler `dask_keeper.py`, which needs `service_link.py` and `token`.

All that listens is bound to the pod's own address, and all connections of Dask are encrypted with the pool's key.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# How long a worker waits for its scheduler, in seconds.
DEATH_TIMEOUT = 60
NO_DISTRIBUTED = (
    "dask pod: the image of this pool has no Dask scheduler and workers: {python} cannot import `distributed`. "
    "Install it in the image with `pip install distributed`, in the same version as in the lab."
)


def scheduler_arguments(folder, pool, address):
    """The arguments of `dask scheduler`."""
    arguments = ["--host", address, "--port", str(pool["scheduler_port"])]
    arguments += ["--dashboard-address", f"{bracketed(address)}:{pool['dashboard_port']}"]
    arguments += ["--protocol", "tls", *tls_arguments(folder)]
    arguments += ["--preload", str(folder / "dask_tls.py"), "--preload", str(folder / "dask_keeper.py")]
    if pool.get("idle_seconds"):
        arguments += ["--idle-timeout", f"{pool['idle_seconds']} seconds"]
    return arguments


def worker_arguments(folder, pool, address, environ):
    """The arguments of `dask worker`."""
    arguments = [environ["WASMSPAWNER_DASK_SCHEDULER"], "--name", environ["WASMSPAWNER_DASK_WORKER"]]
    arguments += ["--host", address, "--worker-port", str(pool["worker_port"]), "--nanny-port", str(pool["nanny_port"])]
    # Without its dashboard a worker listens for HTTP all the same, by default on all addresses.
    arguments += ["--no-dashboard", "--dashboard-address", f"{bracketed(address)}:0"]
    arguments += ["--protocol", "tls", *tls_arguments(folder), "--death-timeout", str(DEATH_TIMEOUT)]
    arguments += ["--preload", str(folder / "dask_tls.py"), "--preload-nanny", str(folder / "dask_tls.py")]
    arguments += ["--local-directory", tempfile.gettempdir()]
    group = environ.get("WASMSPAWNER_DASK_GROUP", "")
    size = next((size for size in pool.get("groups") or () if size["name"] == group), {}) if group else pool
    if size.get("threads"):
        arguments += ["--nthreads", str(size["threads"])]
    if size.get("memory_bytes"):
        arguments += ["--memory-limit", str(size["memory_bytes"])]
    if group:
        # Tasks ask for the group by this resource. Each thread has one of it.
        arguments += ["--resources", f"{group}={size.get('threads') or os.cpu_count() or 1}"]
    return arguments


def tls_arguments(folder):
    """All parties of a pool have the same certificate, which is its own authority."""
    certificate, key = str(folder / "tls.crt"), str(folder / "tls.key")
    return ["--tls-ca-file", certificate, "--tls-cert", certificate, "--tls-key", key]


def bracketed(address):
    """An address before a port."""
    return f"[{address}]" if ":" in address else address


def has_distributed():
    """True if Dask's programs are installed where they will be looked up, which is not where `python3 -I` looks."""
    test = "import importlib.util as u, sys; sys.exit(not (u.find_spec('distributed') and u.find_spec('dask')))"
    return subprocess.call([sys.executable, "-c", test]) == 0


def main(folder, role):
    """Become the scheduler or a worker. Returns an exit code only if that is not possible."""
    if role not in ("scheduler", "worker"):
        print("dask pod: the one argument of this program is `scheduler` or `worker`", file=sys.stderr)
        return 2
    pool = json.loads((folder / "pool.json").read_text("utf-8"))
    address = os.environ.get("POD_IP") or os.environ.get("WASMSPAWNER_POD_IP") or "127.0.0.1"
    if not has_distributed():
        print(NO_DISTRIBUTED.format(python=sys.executable), file=sys.stderr, flush=True)
        return 1
    if role == "scheduler":
        arguments = scheduler_arguments(folder, pool, address)
    else:
        arguments = worker_arguments(folder, pool, address, os.environ)
    # Dask itself runs without `-I`, so that packages of the user are found.
    command = [sys.executable, "-m", f"distributed.cli.dask_{role}", *arguments]
    return os.execv(sys.executable, command)


if __name__ == "__main__":
    sys.exit(main(Path(__file__).absolute().parent, "".join(sys.argv[1:2])))
