"""Debian's NGINX, configured from GafaelfawrIngresses as Gafaelfawr's operator and ingress-nginx do it together."""

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest
import requests
from world import ROOT, eventually, free_port

import toolchain

sys.path.insert(0, str(ROOT / "tests/node"))

import debian

# What the operator lists in the annotation `auth-response-headers`, for all ingresses.
REPLACED = (
    "Authorization",
    "Cookie",
    "X-Auth-Request-Email",
    "X-Auth-Request-Service",
    "X-Auth-Request-Token",
    "X-Auth-Request-User",
)
# The address from which NGINX connects to what is behind it.
ADDRESS = "127.0.0.77"
PAGE = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    large_client_header_buffers 4 32k;
    proxy_buffer_size 32k;
    proxy_buffers 8 32k;
    proxy_http_version 1.1;
    proxy_bind {address};
    map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
    upstream gafaelfawr {{ server {gafaelfawr}; keepalive 8; }}
{upstreams}
    server {{
        listen 127.0.0.1:{port};
        location = /is-up {{ return 204; }}
        location @autherror {{
            if ($auth_status = 400) {{ return 400; }}
            if ($auth_status = 422) {{ return 422; }}
            return 403;
        }}
{locations}
    }}
}}
"""
LOCATION = """\
        location {match} {{
            auth_request /auth-{number};
            auth_request_set $auth_status $upstream_http_x_error_status;
            error_page 403 = @autherror;
{replaced}
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Host $http_host;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
            proxy_buffering {buffering};
            proxy_read_timeout {timeout}s;
            proxy_pass http://{upstream};
        }}
"""
SUBREQUEST = """\
        location = /auth-{number} {{
            internal;
            proxy_pass_request_body off;
            proxy_method GET;
            proxy_set_header Content-Length "";
            proxy_set_header Connection "";
            proxy_set_header X-Original-URI $request_uri;
            proxy_set_header X-Original-Method $request_method;
            proxy_pass http://gafaelfawr{question};
        }}
"""


def question(config: dict) -> str:
    """What NGINX asks Gafaelfawr for each request to an ingress with this `config`."""
    scopes = config["scopes"]
    if scopes.get("anonymous"):
        return "/ingress/anonymous"
    delegate = config.get("delegate", {})
    query = [("scope", scope) for scope in scopes.get("any") or scopes["all"]]
    query += [("satisfy", "any")] if "any" in scopes else []
    query += [("notebook", "true")] if "notebook" in delegate else []
    query += [("minimum_lifetime", delegate["minimumLifetime"])] if "minimumLifetime" in delegate else []
    query += [("service", config["service"])] if "service" in config else []
    return f"/ingress/auth?{urlencode(query)}"


@dataclass
class NginxIngress:
    """NGINX as a process. `ingresses` are GafaelfawrIngresses, `backends` the address behind each of their services."""

    folder: Path
    gafaelfawr: str
    ingresses: list[dict]
    backends: dict[str, str]
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self):
        """The time in which it runs. The test is skipped where NGINX cannot be had."""
        try:
            program = debian.nginx()
        except toolchain.Missing as missing:
            pytest.skip(f"skipped: NGINX is needed; {missing}")
        self.folder.mkdir()
        file = self.folder / "nginx.conf"
        file.write_text(self.page())
        with open(self.folder / "output.log", "wb") as log:
            command = [program, "-p", self.folder, "-c", file, "-e", self.folder / "error.log"]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            eventually(lambda: self._answers(process), what="NGINX answers")
            yield self
        finally:
            process.terminate()
            process.wait(30)

    def page(self) -> str:
        """Its configuration."""
        locations, subrequests = [], []
        for number, ingress in enumerate(self.ingresses):
            subrequests.append(SUBREQUEST.format(number=number, question=question(ingress["config"])))
            locations += self._locations(number, ingress["template"])
        # As ingress-nginx has them: NGINX takes the first expression that matches, and other paths by their length.
        locations.sort(key=lambda pair: len(pair[0]), reverse=True)
        return PAGE.format(
            folder=self.folder,
            port=self.port,
            address=ADDRESS,
            gafaelfawr=self.gafaelfawr.removeprefix("http://"),
            upstreams="\n".join(
                f"    upstream {name} {{ server {place}; keepalive 32; }}" for name, place in self.backends.items()
            ),
            locations="".join(subrequests + [text for _, text in locations]),
        )

    def _locations(self, number: int, template: dict) -> list[tuple[str, str]]:
        annotations = template["metadata"].get("annotations", {})

        def annotation(name: str, usual: str) -> str:
            return annotations.get(f"nginx.ingress.kubernetes.io/{name}", usual)

        regular = annotation("use-regex", "false") == "true"
        replaced = [
            f"            auth_request_set $header_{at} $upstream_http_{name.lower().replace('-', '_')};\n"
            f"            proxy_set_header {name} $header_{at};"
            for at, name in enumerate(REPLACED)
        ]
        return [
            (
                path["path"],
                LOCATION.format(
                    match=f'~* "^{path["path"]}"' if regular else path["path"],
                    number=number,
                    replaced="\n".join(replaced),
                    buffering=annotation("proxy-buffering", "off"),
                    timeout=annotation("proxy-read-timeout", "60"),
                    upstream=path["backend"]["service"]["name"],
                ),
            )
            for rule in template["spec"]["rules"]
            for path in rule["http"]["paths"]
        ]

    def _answers(self, process: subprocess.Popen) -> bool:
        assert process.poll() is None, (self.folder / "output.log").read_text() + (
            self.folder / "error.log"
        ).read_text()
        try:
            return requests.get(f"{self.url}/is-up", timeout=5).status_code == 204
        except requests.RequestException:
            return False
