"""The ingresses for Gafaelfawr lead to every route of the API."""

import re

import pytest
from chart import DEPLOY, EXAMPLES

GAFAELFAWR = next(path for path in EXAMPLES if path.stem == "gafaelfawr")
# Who may use a route, in the page of the API, and the ingresses through which they come.
INGRESSES = {
    "U, A": {"spawn", "labs"},
    "U, H, A": {"labs"},
    "H, A": {"hub", "labs"},
    "A": {"admin"},
}
PLACES = {
    "user": "ada",
    "server": "gpu",
    "kernel": "k1",
    "pool": "p1",
    "target": "t1",
    "blueprint": "b1",
    "job_id": "01a1fd9e-deb5-7652-a3d6-2d71fc436701",
}


def routes():
    """The paths of the API with those who may use them, from its page, which a test holds against the service."""
    page = (DEPLOY.parent / "host/api/src/README.md").read_text()
    for row in re.findall(r"^\| (`(?:GET|POST|PUT|DELETE) .*) \|$", page, flags=re.MULTILINE):
        named, _, rest = row.partition(" | ")
        who = rest.rpartition(" | ")[2]
        for path in re.findall(r"`[A-Z]+ (/[^`?]*)", named):
            yield path, who


def ingresses(chart):
    """The regular expression of each path, the longest first as NGINX tries them, and the name of its ingress."""
    found = []
    for each in chart.render(GAFAELFAWR):
        if each["kind"] == "GafaelfawrIngress":
            paths = each["template"]["spec"]["rules"][0]["http"]["paths"]
            found += [(path["path"], each["metadata"]["name"].rpartition("-")[2]) for path in paths]
    return sorted(found, key=lambda path: -len(path[0]))


@pytest.mark.parametrize("named_server", [False, True])
def test_every_route_has_an_ingress_with_the_scopes_of_its_callers(chart, named_server):
    patterns = ingresses(chart)
    prefix = "/spawner/v1"
    tried = 0
    for path, who in routes():
        if who not in INGRESSES:
            continue
        if named_server and "{user}" in path:
            path = path.replace("{user}", "{user}/servers/{server}")
        concrete = prefix + re.sub(r"{(\w+)}", lambda name: PLACES[name[1]], path)
        ingress = next((name for pattern, name in patterns if re.match(pattern, concrete)), None)
        assert ingress in INGRESSES[who], f"{path} is for {who} and goes through {ingress}"
        tried += 1
    assert tried > 35
