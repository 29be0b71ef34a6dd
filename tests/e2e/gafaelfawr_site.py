"""A site behind Gafaelfawr: NGINX with the ingresses that the chart makes, the service with the configuration that the chart
makes, and a real Hub. `with GafaelfawrSite(folder).running()`. All that the tests ask goes through NGINX, unless they say
otherwise."""

import os
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
import yaml
from gafaelfawr import COOKIE, Gafaelfawr, Token
from nginx_ingress import ADDRESS, NginxIngress
from world import ROOT, Visitor, World, free_port

import stack
import toolchain

sys.path.insert(0, str(ROOT / "tests/chart"))

from chart import SOURCE, Chart, configuration, merged
from helm import Helm

HOST = "lab.example.org"
# The shortest life that a token must have left for the start of a lab.
MINIMUM_LIFETIME = 3600
# Beside those of the chart's example.
VALUES = {
    "upgradeCheck": {"enabled": False},
    "gafaelfawr": {"minimumLifetime": MINIMUM_LIFETIME},
    "config": {"auth": {"headers": {"trusted_peers": [ADDRESS]}}},
}
# The ingress of JupyterHub, which is not the chart's.
HUB_INGRESS = {
    "config": {"scopes": {"any": ["exec:notebook"]}, "service": "hub", "delegate": {"notebook": {}}},
    "template": {
        "metadata": {"name": "hub", "annotations": {}},
        "spec": {"rules": [{"http": {"paths": [{"path": "/", "backend": {"service": {"name": "hub"}}}]}}]},
    },
}


@dataclass
class BehindIngress(stack.Settings):
    """The setup whose API is asked through NGINX."""

    ingress: str = ""

    @property
    def api_url(self) -> str:
        return f"{self.ingress}/spawner/v1"


class GafaelfawrSite(World):
    """The running site."""

    def __init__(self, folder: Path) -> None:
        self.gafaelfawr = Gafaelfawr()
        # As Gafaelfawr's settings map its groups to scopes, and as GafaelfawrServiceTokens give them to services.
        self.admin = self.gafaelfawr.log_in("admin", "exec:notebook", "admin:notebook", **self._person())
        bot = self.gafaelfawr.service_token("bot-jupyterhub", "admin:jupyterhub")
        self.rendered = self._render(folder)
        self.configured = configuration(self.rendered)
        state = folder / "state"
        state.mkdir(mode=0o700)
        settings = BehindIngress(
            state=state,
            program=toolchain.target_dir() / "debug/wasmspawner",
            venv=Path(sys.executable).parent,
            hub_port=free_port(),
            spawner_port=free_port(),
            adapt=self._adapt,
            hub_config=Path(__file__).parent / "gafaelfawr_hub_config.py",
            tokens={("--admin",): self.admin.text, ("--hub",): bot.text},
        )
        super().__init__(settings)
        self.nginx: NginxIngress | None = None

    @property
    def url(self) -> str:
        return self.nginx.url

    @property
    def direct_url(self) -> str:
        """The API without the ingress, which labs could reach where no network policy forbids it."""
        return f"http://127.0.0.1:{self.settings.spawner_port}/spawner/v1"

    @contextmanager
    def running(self):
        with ExitStack() as stack_of:
            stack_of.enter_context(self.gafaelfawr.running())
            self.nginx = NginxIngress(
                self.settings.state / "nginx",
                self.gafaelfawr.url,
                [each for each in self.rendered if each["kind"] == "GafaelfawrIngress"] + [HUB_INGRESS],
                {
                    "wasmspawner": f"127.0.0.1:{self.settings.spawner_port}",
                    "hub": f"127.0.0.1:{self.settings.hub_port}",
                },
            )
            stack_of.enter_context(self.nginx.running())
            self.settings.ingress = self.nginx.url
            os.environ["TEST_HUB_CONFIG"] = str(Path(__file__).parent / "jupyterhub_config.py")
            with super().running():
                yield self

    def log_in(self, username: str, *scopes: str, lifetime: float = 24 * 3600) -> "GafaelfawrVisitor":
        """A user who has logged in."""
        token = self.gafaelfawr.log_in(username, *scopes or ("exec:notebook",), lifetime=lifetime, **self._person())
        return GafaelfawrVisitor(self, username, token)

    def ask(self, method: str, path: str, token: Token | str = "", *, direct: bool = False, **options):
        """A request to the API with a bearer token, through NGINX or directly."""
        headers = {"X-Requested-With": "the tests"} | options.pop("headers", {})
        if token:
            headers["Authorization"] = f"Bearer {token.text if isinstance(token, Token) else token}"
        url = (self.direct_url if direct else self.settings.api_url) + path
        return requests.request(method, url, headers=headers, timeout=60, allow_redirects=False, **options)

    @staticmethod
    def _person() -> dict:
        # Labs run as the user who runs the tests; the objects in the cluster never have uid 0.
        return {"uid": os.getuid() or 1000, "gid": os.getgid() or 1000}

    @staticmethod
    def _render(folder: Path) -> list[dict]:
        try:
            helm = Helm(folder / "helm")
        except toolchain.Missing as missing:
            pytest.skip(f"skipped: the chart's ingresses are needed; {missing}")
        (folder / "chart").mkdir()
        helm.run("package", SOURCE, "-d", folder / "chart")
        (archive,) = (folder / "chart").glob("*.tgz")
        (folder / "values").mkdir()
        values = yaml.safe_load((SOURCE / "examples/gafaelfawr.yaml").read_text())
        return Chart(helm, archive, folder / "values").render(merged(values, VALUES))

    def _adapt(self, config: dict) -> None:
        """What the chart has rendered, with the addresses of this machine."""
        config["auth"] = self.configured["auth"]
        config["auth"]["headers"]["url"] = self.gafaelfawr.url
        config["http"]["labs_url"] = self.configured["http"]["labs_url"].replace(f"https://{HOST}", self.nginx.url)


class GafaelfawrVisitor(Visitor):
    """A user with Gafaelfawr's cookie."""

    def __init__(self, site: GafaelfawrSite, name: str, token: Token) -> None:
        site.take_user(name)
        self.world, self.name, self.token = site, name, token
        self.session = requests.Session()
        self.session.cookies.set(COOKIE, token.text)
        self.session.get(f"{site.url}/hub/home", timeout=30).raise_for_status()
