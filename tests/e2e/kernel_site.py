"""A service with one lab, for clients of kernels that are not in that lab: `with KernelSite(folder).running()`, or from a
shell `python tests/e2e/kernel_site.py COMMAND...`, which runs the command where the lab's Jupyter server would."""

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [path for path in (str(ROOT / "deploy/local"), str(Path(__file__).parent)) if path not in sys.path]

import lab_package  # noqa: E402
from lone_service import LoneService  # noqa: E402

import site_config  # noqa: E402
import stack  # noqa: E402

USER = "ada"


class KernelSite:
    """The service and the lab."""

    def __init__(self, folder: Path) -> None:
        self.lone = LoneService(folder, self._adapt)
        self.lone.settings.runtime = "process"
        self.homes = self.lone.settings.state / "homes"

    @contextmanager
    def running(self):
        """The time in which service and lab run."""
        with self.lone.running():
            self.lone.start_lab(USER, image="minimal")
            try:
                yield self
            finally:
                stack.stop_all_labs(self.lone.settings, 30)

    def environment(self) -> dict[str, str]:
        """The variables of the lab's Jupyter server. Its kernels run in pods of their own."""
        settings = self.lone.settings
        package = lab_package.write(settings.state / "lab", site_config.search_path(settings.venv))
        return (
            os.environ
            | package
            | {
                "PYTHONPATH": f"{package['PYTHONPATH']}:{os.environ.get('PYTHONPATH', '')}",
                "WASMSPAWNER_URL": settings.api_url,
                "WASMSPAWNER_TOKEN": stack.token(settings, "--user", USER),
                "JUPYTERHUB_USER": USER,
                "JUPYTER_DEFAULT_PROVISIONER_NAME": "wasmspawner-provisioner",
            }
        )

    def kernels(self) -> list[dict]:
        """What the service says about the kernels."""
        return self.lone.get(f"/labs/{USER}/kernels")

    def _adapt(self, config: dict) -> None:
        lab, kernel = config["embedded"]["images"]
        # What is installed in the image of the kernels.
        kernel["env"]["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
        # The lab itself is not asked anything.
        lab["command"] = [sys.executable, "-m", "http.server", "--bind", "{pod_ip}"]
        lab["args"] = ["{port}"]
        config["lab"]["readiness_probe"] = None
        config["limits"] = {"per_user": {"kernels": 200, "requests_per_second": 1000, "requests_at_once": 200}}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, KernelSite(Path(folder)).running() as site:
        code = subprocess.call(sys.argv[1:], env=site.environment())
        print(f"kernels that are left: {len(site.kernels())}")
        return code


if __name__ == "__main__":
    sys.exit(main())
