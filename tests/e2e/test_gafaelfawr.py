"""Labs, kernels in pods of their own and Dask pools behind Gafaelfawr and NGINX, with what the chart makes for both."""

import base64
import json
import time
from contextlib import closing, contextmanager
from http.client import HTTPConnection

import pytest
from gafaelfawr import COOKIE
from gafaelfawr_site import MINIMUM_LIFETIME, GafaelfawrSite
from jupyter_lab import JupyterLab
from world import eventually

KERNEL = "own-pod"
POOL = """
from wasmspawner.dask import WasmSpawnerCluster
pool = WasmSpawnerCluster("mine", n_workers=1, quiet=True)
client = pool.get_client()
print(client.submit(sum, [20, 22]).result())
pool.scale(2)
client.wait_for_workers(2, timeout=60)
print(len(client.scheduler_info()["workers"]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with GafaelfawrSite(tmp_path_factory.mktemp("gafaelfawr")).running() as site:
        yield site


@pytest.fixture(scope="module")
def lab(site):
    """A user's running JupyterLab, for tests that leave it as it is."""
    with opened(site, "ada") as lab:
        yield lab


@contextmanager
def opened(site, name):
    """The time in which a user has a JupyterLab in a browser."""
    visitor = site.log_in(name)
    jupyter = start(site, visitor)
    try:
        yield visitor, jupyter
    finally:
        if site.servers(name):
            site.hub_api("DELETE", f"/users/{name}/server")
            eventually(lambda: not site.servers(name), what="the server is gone")


def start(site, visitor):
    """Start the user's JupyterLab."""
    page = visitor.submit()
    assert page.ok, page.text
    assert visitor.progress()[-1][1].get("ready") is True
    jupyter = JupyterLab(site, visitor.name)
    jupyter.headers["Cookie"] = f"{COOKIE}={visitor.token.text}"
    return jupyter


def token_of_lab(site, user):
    """The token that the user's lab has for the service."""
    for _, variables in site.processes(user):
        if "WASMSPAWNER_MOUNT_WASMSPAWNER_SECRETS" in variables:
            folder, name = variables["WASMSPAWNER_MOUNT_WASMSPAWNER_SECRETS"], variables["WASMSPAWNER_TOKEN_FILE"]
            with open(f"{folder}/{name.rpartition('/')[2]}") as file:
                return file.read().strip()
    raise AssertionError(f"{user} has no lab with a token")


def token_of_launcher(site, kernel):
    """The token that the program in a kernel's pod has."""
    secrets = site.ask_cluster("GET", "/api/v1/secrets").json()["items"]
    of_kernels = [each["data"] for each in secrets if "kernel.token" in each.get("data", {})]
    [token] = [each["kernel.token"] for each in of_kernels if kernel in text(each["kernel.launch.json"])]
    return text(token)


def text(encoded):
    return base64.b64decode(encoded).decode()


def test_a_notebook_computes_in_a_pod_and_in_a_pool_with_the_user_s_own_token(site, lab):
    visitor, jupyter = lab
    token = site.gafaelfawr.tokens[token_of_lab(site, visitor.name)]
    assert (token.username, token.kind) == (visitor.name, "notebook")
    assert token is not visitor.token, "a lab never has the token of the browser"

    kernel = jupyter.start_kernel(KERNEL)
    assert jupyter.run(kernel, "print(6 * 7)") == "42\n"
    endless = "import threading\nprint('begun', flush=True)\nthreading.Event().wait()"
    assert "KeyboardInterrupt" in jupyter.run(kernel, endless, interrupt_at="begun"), "the launcher is commanded"
    [known] = site.kernels(visitor.name)
    assert known["process"]["state"] == "running", "the launcher reports"
    assert site.gafaelfawr.asked["/ingress/anonymous"], "it comes through NGINX as well"

    notebook = jupyter.start_kernel("python3")
    assert jupyter.run(notebook, POOL) == "42\n2\n"

    assert jupyter.ask("DELETE", f"/kernels/{kernel}").status_code == 204
    eventually(lambda: not site.kernels(visitor.name), what="the kernel is gone")
    assert "True" in jupyter.run(notebook, "pool.close(); print(pool.status.name == 'closed')")


def test_the_tokens_of_programs_in_pods_pass_the_ingress_unseen(site, lab):
    visitor, jupyter = lab
    kernel, other = jupyter.start_kernel(KERNEL), jupyter.start_kernel(KERNEL)
    launcher = token_of_launcher(site, kernel)
    path = f"/labs/{visitor.name}/kernels/{kernel}"
    with site.ask("GET", f"{path}/launcher", launcher, stream=True) as stream:
        assert (stream.status_code, stream.headers["Content-Type"]) == (200, "text/event-stream")

    # It is good for its kernel alone, and neither NGINX nor the service takes it for that of a person.
    for refused in (
        site.ask("GET", f"/labs/{visitor.name}/kernels/{other}/launcher", launcher),
        site.ask("GET", path, launcher),
        site.ask("DELETE", f"/labs/{visitor.name}", launcher),
        site.ask("POST", f"/labs/{visitor.name}/kernels/another", launcher, json={}),
        site.ask("GET", path, launcher, direct=True),
        site.ask("DELETE", f"/labs/{visitor.name}", launcher, direct=True),
    ):
        assert refused.status_code in (401, 403), refused.text
    # Nobody else comes in where it does.
    for somebody in ("", visitor.token, token_of_lab(site, visitor.name), site.admin, "guessed"):
        answers = [
            site.ask("GET", f"{path}/launcher", somebody),
            site.ask("PUT", f"{path}/launcher", somebody, json={}),
        ]
        assert [answer.status_code for answer in answers] == [401, 401], answers[0].text


def test_no_other_way_of_writing_a_path_avoids_gafaelfawr(site, lab):
    """NGINX chooses the ingress by the path as it understands it, and passes on the path as the client wrote it."""
    visitor, jupyter = lab
    kernel = jupyter.start_kernel(KERNEL)
    own = f"/labs/{visitor.name}/kernels/{kernel}"
    before = site.gafaelfawr.asked["/ingress/anonymous"]
    forged = {
        "X-Auth-Request-User": visitor.name,
        "X-Auth-Request-Token": token_of_lab(site, visitor.name),
        "X-Requested-With": "the tests",
    }
    for path in (
        f"{own}%2Flauncher",
        f"{own.replace('/kernels/', '%2Fkernels%2F')}%2flauncher",
        f"/labs/{visitor.name}%2Fkernels%2Fx%2Flauncher",
        f"{own}/x/../launcher",
        f"{own}//launcher",
        f"{own}/%2e/launcher",
        f"{own.upper()}/LAUNCHER",
        "/x/../openapi.json",
        "/labs/%2e%2e/openapi.json",
        f"/labs/{visitor.name}%2F..%2F..%2Fopenapi.json",
        f"{own}%3F/../launcher",
    ):
        for method in ("GET", "DELETE"):
            status, body = raw_request(site, method, path, forged)
            assert status in (400, 401, 404, 405), f"{method} {path}: {status} {body}"
    assert site.gafaelfawr.asked["/ingress/anonymous"] > before, (
        "some of them lead to the ingress without authentication"
    )
    assert site.lab(visitor.name)["status"] == "running"
    assert kernel in [each["id"] for each in site.kernels(visitor.name)]


def test_a_header_of_one_s_own_makes_nobody_another_user(site):
    bob, eve = site.log_in("bob"), site.log_in("eve")
    of_bob = site.gafaelfawr.notebook_token(bob.token, 0).text
    for forged in (
        {"X-Auth-Request-User": "bob"},
        {"X-Auth-Request-User": "bob", "X-Auth-Request-Token": of_bob},
        {"X-Auth-Request-User": "admin", "X-Auth-Request-Token-Scopes": "admin:notebook"},
    ):
        assert site.ask("GET", "/labs/bob", headers=forged).status_code == 401
        # Who has logged in stays who that is.
        assert site.ask("GET", "/labs/bob", eve.token, headers=forged).status_code == 403
        assert site.ask("GET", "/labs/eve", eve.token, headers=forged).status_code == 404
        assert site.ask("GET", "/policies", eve.token, headers=forged).status_code == 403
        # Without NGINX the headers are nobody's word, and neither are the tokens of Gafaelfawr.
        for token in ("", eve.token, of_bob):
            answer = site.ask("GET", "/labs/bob", token, headers=forged, direct=True)
            assert (answer.status_code, problem(answer)) == (401, "untrusted_peer")


def test_a_lab_s_token_is_good_for_the_labs_of_its_user_alone(site, lab):
    visitor, _ = lab
    token, other = token_of_lab(site, visitor.name), site.log_in("someone-else").name
    for method, path in (
        ("POST", f"/labs/{other}/kernels/k"),
        ("GET", f"/labs/{other}/kernels"),
        ("DELETE", f"/labs/{other}/kernels/k"),
        ("POST", f"/labs/{other}/dask-pools/p"),
        ("POST", f"/labs/{other}/spawn"),
        ("DELETE", f"/labs/{other}"),
        ("GET", "/labs"),
        ("POST", "/policies/reload"),
    ):
        answer = site.ask(method, path, token, json={} if method == "POST" else None)
        assert answer.status_code == 403, f"{method} {path}: {answer.text}"
    assert site.ask("GET", f"/labs/{visitor.name}/kernels", token).status_code == 200


def test_kernels_start_as_long_as_the_lab_s_token_is_valid_and_then_go_on(site):
    with opened(site, "late") as (visitor, jupyter):
        token = site.gafaelfawr.tokens[token_of_lab(site, "late")]
        assert token.expires - time.time() > MINIMUM_LIFETIME
        # A new lab needs more than what is left now, the kernels of this one do not.
        site.gafaelfawr.shorten(token, MINIMUM_LIFETIME / 2)
        kernel = jupyter.start_kernel(KERNEL)
        jupyter.run(kernel, "x = 'still there'")
        assert site.ask("POST", "/labs/late/spawn", token, json={}).status_code == 401

        token.expires = time.time() - 1
        answer = jupyter.ask("POST", "/kernels", json={"name": KERNEL})
        assert answer.status_code == 403, answer.text
        assert "may have expired" in answer.json()["message"], answer.text
        notebook = jupyter.start_kernel("python3")
        assert "PoolNotAllowed" in jupyter.run(notebook, POOL)
        # The pod reports with a token of its own, and its lab needs none to use the kernel.
        assert jupyter.run(kernel, "print(x)") == "still there\n"
        [known] = site.kernels("late")
        assert (known["id"], known["process"]["state"]) == (kernel, "running")

        # What the message says helps: the next lab has another token. The user has to log in again for it.
        site.hub_api("DELETE", "/users/late/server")
        eventually(lambda: not site.servers("late"), what="the server is gone")
        visitor.submit()
        refused = visitor.progress()[-1][1]
        assert refused.get("failed") is True
        assert "log in again" in json.dumps(refused), refused
        assert site.lab("late") is None
        again = site.log_in("late")
        jupyter = start(site, again)
        assert jupyter.run(jupyter.start_kernel(KERNEL), "print('again')") == "again\n"


def test_each_ingress_lets_in_its_callers(site):
    user, bot = site.log_in("caller").token, site.settings.tokens[("--hub",)]
    for method, path, token, expected in (
        ("GET", "/labs", bot, 200),
        ("GET", "/lab-status", bot, 200),
        ("GET", "/labs/caller", bot, 404),
        ("GET", "/policies", bot, 403),
        ("POST", "/labs/caller/spawn", bot, 403),
        ("GET", "/labs/caller/logs", bot, 403),
        ("GET", "/labs", user, 403),
        ("GET", "/policies", user, 403),
        ("GET", "/policies", site.admin, 200),
        ("GET", "/openapi.json", "", 200),
        ("GET", "/labs", "", 401),
    ):
        answer = site.ask(method, path, token, json={} if method == "POST" else None)
        assert answer.status_code == expected, f"{method} {path}: {answer.status_code} {answer.text}"


def problem(answer):
    return answer.json()["detail"][0]["type"]


def raw_request(site, method, path, headers):
    """A request whose path no library has made nicer."""
    with closing(HTTPConnection("127.0.0.1", site.nginx.port, timeout=30)) as connection:
        connection.request(method, f"/spawner/v1{path}", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()[:500]
