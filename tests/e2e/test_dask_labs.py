"""Dask pools of a real JupyterLab that nobody has configured for that, and their dashboards through the Hub's proxy."""

import pytest
import requests
from jupyter_lab import JupyterLab
from world import Visitor, eventually

import stack

START = """
from wasmspawner.dask import WasmSpawnerCluster
pool = WasmSpawnerCluster("mine", n_workers=2, quiet=True)
client = pool.get_client()
print(client.submit(sum, [20, 22]).result())
"""
REPRESENTATION = "print('Workers: 2' in pool._repr_html_(), pool.status.name)"


@pytest.fixture
def lab(world, request):
    """The JupyterLab of a user of this test."""
    name = request.node.name.replace("_", "-")[:40]
    visitor = Visitor(world, name)
    visitor.submit()
    assert visitor.progress()[-1][1].get("ready") is True
    yield name, JupyterLab(world, name)
    if world.servers(name):
        world.hub_api("DELETE", f"/users/{name}/server")
        eventually(lambda: not world.servers(name), what="the server is gone")


def service(world, path):
    headers = {"Authorization": f"Bearer {stack.token(world.settings, '--admin')}"}
    return requests.get(f"{world.settings.api_url}{path}", headers=headers, timeout=30)


def test_a_notebook_s_pool_computes_and_shows_its_dashboard_to_its_user_alone(world, lab):
    user, jupyter = lab
    kernel = jupyter.start_kernel("python3")
    assert jupyter.run(kernel, START) == "42\n"
    pool = service(world, f"/labs/{user}/dask-pools/mine").json()
    assert (pool["status"], pool["workers"]["desired"]) == ("running", 2)
    jupyter.run(kernel, "pool.wait_for_workers(2, timeout=60)")
    assert jupyter.run(kernel, REPRESENTATION) == "True running\n"
    assert "mine  running" in jupyter.run(kernel, "!wasmspawner dask list")

    link = jupyter.run(kernel, "print(pool.dashboard_link)").strip()
    address = pool["dashboard_url"].removeprefix("http://")
    assert link == f"/user/{user}/proxy/{address}/status"
    page = get(world, link, jupyter.headers)
    assert (page.status_code, "Dask Diagnostic UI" in page.text) == (200, True), page.text[:500]
    # The plots need bokeh in the scheduler's image.
    plot = get(world, link.replace("/status", "/individual-task-stream"), jupyter.headers)
    assert (plot.status_code, "bokeh" in plot.text) == (200, True), plot.text[:500]

    nobody = get(world, link, {})
    assert "login" in nobody.url or nobody.status_code == 403, nobody.url
    stranger = Visitor(world, "stranger").session.get(world.url + link, timeout=30)
    assert stranger.status_code in (403, 404), stranger.text[:500]
    # Neither other ports of the pool nor other addresses are for browsers.
    of_pool, of_lab = address.partition(":")[0], world.lab(user)["url"].split("/")[2]
    for other in (f"{of_pool}:8786", "127.0.0.77:8787", of_lab):
        refused = get(world, link.replace(address, other), jupyter.headers)
        assert refused.status_code == 403, f"{other}: {refused.text[:500]}"

    world.hub_api("DELETE", f"/users/{user}/server")
    eventually(lambda: not world.servers(user), what="the Hub's server is gone")
    eventually(lambda: service(world, f"/labs/{user}/dask-pools/mine").status_code == 404, what="the pool is gone")


def get(world, path, headers):
    return requests.get(world.url + path, headers=headers, timeout=30)
