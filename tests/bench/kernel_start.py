"""What it costs that a kernel has a pod of its own: the time until it can be used, as a ratio to a local kernel.

    python tests/bench/kernel_start.py [--times 10] [--program FILE]

Both are started by jupyter_client: from the call of `start_kernel` to the kernel's answer to `kernel_info`, then to the end
of its shutdown, and from the call of `restart_kernel` to the answer. Pods are processes of this machine, so the ratio is
what service, launcher and provisioner cost, without scheduler and container runtime. It needs the environment of
`make test`.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "deploy/local"), str(ROOT / "sdk/python/src")]

from bench_arguments import arguments  # noqa: E402
from jupyter_client.manager import AsyncKernelManager  # noqa: E402
from jupyter_client.provisioning import KernelProvisionerFactory  # noqa: E402
from kernel_site import KernelSite  # noqa: E402


def main() -> None:
    """Measure, and print."""
    options = arguments(__doc__, "--times", 10, "how many kernels of each kind are started")
    with tempfile.TemporaryDirectory() as folder:
        site = KernelSite(Path(folder))
        site.lone.settings.program = options.program
        with site.running():
            os.environ.update(site.environment())
            sys.path[:0] = os.environ["PYTHONPATH"].split(":")
            kinds = ("local-provisioner", "wasmspawner-provisioner")
            local, own_pod = (asyncio.run(measure(kind, options.times)) for kind in kinds)
    for what in local:
        reference, own = (statistics.median(seconds[what]) for seconds in (local, own_pod))
        print(f"{what:10} local {reference:6.3f} s, in a pod of its own {own:6.3f} s: {own / reference:.1f} times")


async def measure(provisioner: str, times: int) -> dict[str, list[float]]:
    """The seconds that each step took, for each of the kernels."""
    KernelProvisionerFactory.instance().default_provisioner_name = provisioner
    seconds: dict[str, list[float]] = {"start": [], "restart": [], "shutdown": []}
    for _ in range(times):
        manager = AsyncKernelManager(kernel_name="python3")
        begun = time.monotonic()
        await manager.start_kernel()
        client = manager.client()
        client.start_channels()
        await client.wait_for_ready(timeout=60)
        seconds["start"].append(time.monotonic() - begun)
        begun = time.monotonic()
        await manager.restart_kernel(now=True)
        await client.wait_for_ready(timeout=60)
        seconds["restart"].append(time.monotonic() - begun)
        client.stop_channels()
        begun = time.monotonic()
        await manager.shutdown_kernel()
        seconds["shutdown"].append(time.monotonic() - begun)
    return seconds


if __name__ == "__main__":
    main()
