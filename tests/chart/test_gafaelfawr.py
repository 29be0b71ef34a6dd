"""The ingresses for Gafaelfawr lead to every route of the API and of its dialects, each with the scopes of its callers."""

import json
import re

import pytest
import yaml
from chart import DEPLOY, SOURCE, configuration, merged, one

GAFAELFAWR = yaml.safe_load((SOURCE / "examples/gafaelfawr.yaml").read_text())
# The list of the service's routes by ingress, which a test of the service holds against its router.
ROUTES = json.loads((SOURCE / "files/routes.json").read_text())
SCOPES = {
    "spawn": {"any": ["exec:notebook"]},
    "owners": {"any": ["exec:notebook"]},
    "labs": {"any": ["exec:notebook", "admin:jupyterhub", "admin:notebook"]},
    "hub": {"any": ["admin:jupyterhub", "admin:notebook"]},
    "admin": {"any": ["admin:notebook"]},
    "anonymous": {"anonymous": True},
}


def ingresses(chart, http=None):
    """The ingresses by the last part of their names."""
    values = merged(GAFAELFAWR, {"config": {"http": http or {}}})
    rendered = [each for each in chart.render(values) if each["kind"] == "GafaelfawrIngress"]
    return {each["metadata"]["name"].rpartition("-")[2]: each for each in rendered}


def patterns(ingress):
    return [path["path"] for path in ingress["template"]["spec"]["rules"][0]["http"]["paths"]]


def concrete(prefix, path):
    return prefix + re.sub(r"{(\w+)}", lambda name: f"some-{name[1]}.1", path)


SERVED = [
    ({}, [("/spawner/v1", "own")]),
    ({"dialects": ["nublado"]}, [("/spawner/v1", "own"), ("/nublado", "nublado")]),
    ({"prefix": "/x", "dialects": ["nublado"], "nublado_prefix": "/y/z"}, [("/x", "own"), ("/y/z", "nublado")]),
]


@pytest.mark.parametrize(("http", "served"), SERVED)
def test_every_route_has_one_ingress_with_the_scopes_of_its_callers(chart, http, served):
    rendered = ingresses(chart, http)
    assert {name: each["config"]["scopes"] for name, each in rendered.items()} == SCOPES
    reached = {}
    for prefix, name, paths in [(prefix, *item) for prefix, api in served for item in ROUTES[api].items()]:
        for path in paths:
            matches = [
                (other, pattern)
                for other, ingress in rendered.items()
                for pattern in patterns(ingress)
                # NGINX ignores the case of letters in the expressions of ingresses.
                if re.match(pattern, concrete(prefix, path), flags=re.IGNORECASE)
            ]
            assert [other for other, _ in matches] == [name], f"{path} is reached through {matches}"
            reached.setdefault(name, []).extend(pattern for _, pattern in matches)
    assert reached == {name: patterns(each) for name, each in rendered.items()}, "no expression is for no route"


def test_a_token_is_delegated_wherever_somebody_is_authenticated(chart):
    for name, each in ingresses(chart).items():
        assert ("delegate" in each["config"]) == (name != "anonymous"), name


def test_only_the_start_of_a_lab_needs_a_token_that_lives_long(chart):
    values = merged(GAFAELFAWR, {"gafaelfawr": {"minimumLifetime": 7200}})
    rendered = [each for each in chart.render(values) if each["kind"] == "GafaelfawrIngress"]
    required = {
        each["metadata"]["name"]: each["config"].get("delegate", {}).get("minimumLifetime") for each in rendered
    }
    assert {name for name, seconds in required.items() if seconds} == {"wasmspawner-spawn"}
    assert required["wasmspawner-spawn"] == 7200
    assert ROUTES["own"]["spawn"] == ["/labs/{username}/servers/{server}/spawn", "/labs/{username}/spawn"]


def test_labs_use_the_ingress_and_cannot_connect_to_the_service(chart):
    def clients(*values):
        return one(chart.render(*values), "NetworkPolicy")["spec"]["ingress"][0]["from"]

    kernels = merged(GAFAELFAWR, {"kernels": {"enabled": True}})
    assert configuration(chart.render(kernels))["http"]["labs_url"] == "https://lab.example.org"
    assert clients(kernels) == clients(merged(GAFAELFAWR, {"kernels": {"enabled": False}}))
    # Where the Hub's own tokens are known, too, labs may have these, and come directly.
    direct = {"http": {"labs_url": "http://wasmspawner.wasmspawner:8090"}, "auth": {"modes": ["headers", "jupyterhub"]}}
    direct["auth"]["jupyterhub"] = {"api_url": "http://hub:8081/hub/api"}
    assert len(clients(merged(kernels, {"config": direct}))) == len(clients(kernels)) + 1


@pytest.mark.parametrize(("secret", "protocols"), [("", {None}), ("certificate", {"HTTPS"})])
def test_nginx_speaks_tls_with_a_service_that_has_a_certificate(chart, secret, protocols):
    rendered = chart.render(merged(GAFAELFAWR, {"secrets": {"tls": {"existingSecret": secret}}}))
    annotations = [
        each["template"]["metadata"]["annotations"] for each in rendered if each["kind"] == "GafaelfawrIngress"
    ]
    assert {each.get("nginx.ingress.kubernetes.io/backend-protocol") for each in annotations} == protocols


def test_the_hub_is_told_the_url_at_which_somebody_knows_it(chart):
    def notes(modes):
        auth = {"modes": modes, "jupyterhub": {"api_url": "http://hub:8081/hub/api"}}
        values = chart.file(merged(GAFAELFAWR, {"config": {"auth": auth}}))
        return chart.helm.run("install", "x", chart.archive, "--dry-run=client", "-n", "nublado", "-f", values)

    assert 'c.WasmSpawner.api_url = "https://lab.example.org/spawner/v1"' in notes(["headers"])
    assert 'c.WasmSpawner.api_url = "http://x-wasmspawner.nublado:8090/spawner/v1"' in notes(["headers", "jupyterhub"])


def test_every_route_of_the_page_is_in_the_list():
    page = (DEPLOY.parent / "host/api/src/README.md").read_text()
    rows = re.findall(r"^\| (`(?:GET|POST|PUT|DELETE) .*) \|$", page, flags=re.MULTILINE)
    on_page = {path for row in rows for path in re.findall(r"`[A-Z]+ (/[^`?]*)", row.partition(" | ")[0])}
    listed = {path.replace("{username}", "{user}") for paths in ROUTES["own"].values() for path in paths}
    assert on_page == {path for path in listed if "/servers/{server}" not in path}
