"""What JupyterHub's tokens are worth to whoever holds them: the Hub says that of each token, and its user's groups add
nothing unless the token is the user's own and unrestricted."""

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from world import HELPERS, STAFF, Visitor

OWNER = "judith"  # of an ordinary server
MEMBER = "ingrid"  # of the staff, who administer labs, and whom the Hub lets into all servers
GUEST = "gerda"  # of those who administer labs and whom the Hub lets into nothing but what is shared with them
CHILD = "5f0c5b53-3a0f-4d29-8f4c-1d5a4f2f9b11"  # a kernel or a Dask pool that does not exist

# Whose server a route is tried for. Nobody has one named `other`, so that no request ends or changes anything.
ANOTHER_S, OWN, OTHER_OWN, NOBODY_S = "another's", "the own", "the own of another name", "nobody's"
ALL = {ANOTHER_S, OWN, OTHER_OWN, NOBODY_S}
# For whose servers each token is good. `nobody's`: for the routes that are about the site.
EXPECTED = {
    "her own": ALL,
    "her own, to start her servers": {OWN, OTHER_OWN},
    "her own, to read her name": set(),
    "of her own server": {OWN},
    "that another's server got when she opened it": set(),
    "that a server which is shared with her got when she opened it": set(),
    "of a service": ALL,
}
# The routes for which JupyterHub's tokens are worth nothing: a pod of a kernel or a pool has a token of its own for them.
OF_PODS = ("/launcher", "/scheduler")
# The routes that only administrators may use, also for their own servers.
OF_ADMINISTRATORS = {("DELETE", "/volumes")}


@pytest.fixture(scope="module")
def tokens(world):
    """The tokens, each made by a real Hub."""
    world.hub_api("POST", f"/users/{MEMBER}", json={})
    world.hub_api("POST", f"/users/{GUEST}", json={})
    world.hub_api("POST", f"/groups/{STAFF}/users", json={"users": [MEMBER]})
    world.hub_api("POST", f"/groups/{HELPERS}/users", json={"users": [GUEST]})
    owner, member, guest = Visitor(world, OWNER), Visitor(world, MEMBER), Visitor(world, GUEST)
    for visitor in (owner, member):
        visitor.submit(image="other")
        assert visitor.progress()[-1][1].get("ready") is True
    of_owner, of_member = (world.token_of_lab(name) for name in (OWNER, MEMBER))
    assert given_to_server(world, guest, OWNER, of_owner) is None, "nothing is shared with her yet"
    world.hub_api("POST", f"/shares/{OWNER}/", json={"user": GUEST})
    return {
        "her own": minted(world, member),
        "her own, to start her servers": minted(world, member, f"servers!user={MEMBER}"),
        "her own, to read her name": minted(world, member, f"read:users:name!user={MEMBER}"),
        "of her own server": of_member,
        "that another's server got when she opened it": given_to_server(world, member, OWNER, of_owner),
        "that a server which is shared with her got when she opened it": given_to_server(world, guest, OWNER, of_owner),
        "of a service": world.hub_token,
    }


def minted(world, visitor, *scopes):
    """A token that the user makes on the Hub's page, with these scopes or without a choice."""
    url = f"{world.url}/hub/api/users/{visitor.name}/tokens"
    xsrf = visitor.session.cookies.get("_xsrf", path="/hub/")
    body = {"note": "for a test"} | ({"scopes": list(scopes)} if scopes else {})
    headers = {"Referer": f"{world.url}/hub/token"}
    answer = visitor.session.post(url, json=body, params={"_xsrf": xsrf}, headers=headers, timeout=30)
    assert answer.status_code == 201, answer.text
    return answer.json()["token"]


def given_to_server(world, visitor, owner, secret):
    """The token that the server of `owner`, which knows its own token, receives when the visitor opens it. None if the Hub does
    not let the visitor in."""
    client, callback = f"jupyterhub-user-{owner}", f"/user/{owner}/oauth_callback"
    asked = {"client_id": client, "redirect_uri": callback, "response_type": "code", "state": "x"}
    url = f"{world.url}/hub/api/oauth2/authorize"
    page = visitor.session.get(url, params=asked, allow_redirects=False, timeout=30)
    if page.status_code == 403:
        return None
    if page.status_code == 200:  # the page that asks whether the server may
        scopes = [html.unescape(each) for each in re.findall(r'name="scopes"[^>]*?value="([^"]+)"', page.text)]
        form = {"_xsrf": visitor.session.cookies.get("_xsrf", path="/hub/"), "scopes": scopes}
        page = visitor.session.post(
            page.url, data=form, headers={"Referer": page.url}, allow_redirects=False, timeout=30
        )
    assert page.status_code == 302, page.text
    assert "code=" in page.headers["Location"], page.headers["Location"]
    (code,) = parse_qs(urlsplit(page.headers["Location"]).query)["code"]
    answer = requests.post(
        f"{world.url}/hub/api/oauth2/token",
        data={
            "client_id": client,
            "client_secret": secret,
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
        },
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    return answer.json()["access_token"]


def requests_of(document, user):
    """All routes of the API with a server each: (whose server, method, route, path). The routes for a default server are tried for
    the user's own, and those for a named one for servers that do not exist."""
    for route, operations in document["paths"].items():
        if "{job_id}" in route:
            continue  # Whose operation it is decides, and nobody has this one: `test_jobs` of the service has the cases.
        named = "/servers/{server}" in route
        for method in (each.upper() for each in operations if each in ("get", "put", "post", "delete")):
            if "{username}" not in route:
                servers = {NOBODY_S: None}
            elif named:
                servers = {ANOTHER_S: OWNER, OTHER_OWN: user}
            elif (method, route) == ("DELETE", "/labs/{username}"):
                continue  # Her lab is to go on. The route with `other` has the same handler.
            else:
                servers = {OWN: user}
            for whose, username in servers.items():
                values = {"username": username, "server": "other", "kernel": CHILD, "pool": CHILD, "target": "none"}
                path = route.format_map(values | {"blueprint": "base"})
                yield whose, method, route, path


def is_allowed(world, method, path, token):
    """Whether the service does what it is asked for, or would if there were such a thing."""
    asked = {"user_string": OWNER} if path == "/lab-lookup" else None
    with requests.request(
        method,
        f"{world.settings.api_url}{path}",
        headers={"Authorization": f"Bearer {token}"},
        params=asked,
        json={},
        allow_redirects=False,
        stream=True,
        timeout=60,
    ) as answer:
        assert answer.status_code < 500, (method, path, answer.status_code, answer.text)
        return answer.status_code not in (401, 403)


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_token_is_worth_what_the_hub_says_of_it_and_not_what_its_user_is(world, tokens, kind):
    document = requests.get(f"{world.settings.api_url}/openapi.json", timeout=30).json()
    user = GUEST if "shared" in kind else MEMBER
    wrong, tried = [], 0
    for whose, method, route, path in requests_of(document, user):
        rest = route.removeprefix("/labs/{username}").removeprefix("/servers/{server}")
        if route in ("/openapi.json", "/docs"):
            expected = True
        elif route.endswith(OF_PODS):
            expected = False
        elif (method, rest) in OF_ADMINISTRATORS:
            expected = EXPECTED[kind] == ALL
        elif rest == "/logs":
            # A lab does not read logs, not even its own.
            expected = whose in EXPECTED[kind] and kind != "of her own server"
        else:
            expected = whose in EXPECTED[kind]
        tried += 1
        if is_allowed(world, method, path, tokens[kind]) != expected:
            wrong.append((method, path, f"expected: {expected}"))
    assert not wrong
    assert tried > 100
