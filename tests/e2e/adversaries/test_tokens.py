"""What JupyterHub's tokens are worth to whoever holds them: the Hub says that of each token, and its user's groups add
nothing unless the token is the user's own and unrestricted."""

import html
import re
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest
import requests
from world import STAFF, Visitor, eventually

OWNER, MEMBER = "judith", "ingrid"  # of an ordinary server, and of the staff, who administer labs
# The routes for which each token is tried. None of them changes anything.
ROUTES = {
    "list everyone's labs": ("GET", "/labs"),
    "read the policies": ("GET", "/policies"),
    "reload the policies": ("POST", "/policies/reload"),
    "list orphans": ("GET", "/orphans"),
    "read another's lab": ("GET", f"/labs/{OWNER}"),
    "start another's lab": ("POST", f"/labs/{OWNER}/spawn"),
    "read another's form": ("GET", f"/spawn-form/{OWNER}"),
    "read the own lab": ("GET", f"/labs/{MEMBER}"),
    "start the own lab": ("POST", f"/labs/{MEMBER}/spawn"),
    "read an own lab of another name": ("GET", f"/labs/{MEMBER}/servers/other"),
}
EVERYTHING = set(ROUTES)
OWN = {"read the own lab", "start the own lab", "read an own lab of another name"}
OWN_SERVER = {"read the own lab", "start the own lab"}
EXPECTED = {
    "her own": EVERYTHING,
    "her own, to start her servers": OWN,
    "her own, to read her name": set(),
    "of her own server": OWN_SERVER,
    "that another's server got when she opened it": set(),
    "that a server which is shared with her got when she opened it": set(),
    "of a service": EVERYTHING,
}


@pytest.fixture(scope="module")
def tokens(world):
    """The tokens, each made by a real Hub."""
    world.hub_api("POST", f"/users/{MEMBER}", json={})
    world.hub_api("POST", f"/groups/{STAFF}/users", json={"users": [MEMBER]})
    owner, member = Visitor(world, OWNER), Visitor(world, MEMBER)
    for visitor in (owner, member):
        visitor.submit(image="other")
        assert visitor.progress()[-1][1].get("ready") is True
    of_owner, of_member = (environment_of(name)["JUPYTERHUB_API_TOKEN"] for name in (OWNER, MEMBER))
    opened = given_to_server(world, member, OWNER, of_owner)
    return {
        "her own": minted(world, member),
        "her own, to start her servers": minted(world, member, f"servers!user={MEMBER}"),
        "her own, to read her name": minted(world, member, f"read:users:name!user={MEMBER}"),
        "of her own server": of_member,
        "that another's server got when she opened it": opened,
        "that a server which is shared with her got when she opened it": opened,
        "of a service": world.hub_token,
    }


def environment_of(user):
    """The variables of a user's lab."""

    def found():
        environments = (process.info["environ"] or {} for process in psutil.process_iter(["environ"]))
        return next((each for each in environments if each.get("JUPYTERHUB_USER") == user), None)

    return eventually(found, what=f"the lab of {user} runs")


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
    """The token that the server of `owner`, which knows its own token, receives when the visitor opens it."""
    client, callback = f"jupyterhub-user-{owner}", f"/user/{owner}/oauth_callback"
    asked = {"client_id": client, "redirect_uri": callback, "response_type": "code", "state": "x"}
    url = f"{world.url}/hub/api/oauth2/authorize"
    page = visitor.session.get(url, params=asked, allow_redirects=False, timeout=30)
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


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_token_is_worth_what_the_hub_says_of_it_and_not_what_its_user_is(world, tokens, kind):
    headers = {"Authorization": f"Bearer {tokens[kind]}"}
    allowed = set()
    for name, (method, path) in ROUTES.items():
        url = f"{world.settings.api_url}{path}"
        answer = requests.request(method, url, headers=headers, json={}, allow_redirects=False, timeout=60)
        assert answer.status_code in (200, 204, 403, 404, 409), (name, answer.status_code, answer.text)
        if answer.status_code != 403:
            allowed.add(name)
    assert allowed == EXPECTED[kind]
