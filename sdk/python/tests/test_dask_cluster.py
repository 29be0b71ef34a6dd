"""The cluster class, certificates and commands against the fake of the service, without Dask's processes."""

import asyncio
import os
import ssl
import sys
import time

import pytest
from aiohttp import web
from fake_kernels import problem
from fake_pools import until

from wasmspawner.command import main
from wasmspawner.dask import (
    PoolError,
    PoolExists,
    PoolNotAllowed,
    PoolUnknown,
    WasmSpawnerCluster,
    list_pools,
    scale_pool,
    stop_pool,
)
from wasmspawner.dask.certificate import Certificate, certificate_file, forget_certificate
from wasmspawner.dask.pool_size import parse_size, pool_size
from wasmspawner.dask.pool_state import PoolState
from wasmspawner.lab import Lab
from wasmspawner.lab_service import LabService, NoService, token_refused

RUNNING = {"status": "running", "scheduler_address": "tls://127.0.0.1:1", "dashboard_url": "http://10.1.2.3:8787"}


async def start(name="big", **arguments):
    return await WasmSpawnerCluster(name, asynchronous=True, quiet=True, **arguments)


def refuse(status, msg):
    async def answer(_request):
        return problem(status, msg, "t")

    return answer


def asked(pools, *methods):
    return [f"{r.method} {r.path}" for r in pools.requests if r.method in methods]


# Start


async def test_the_policys_refusal_is_a_permission_error_with_its_words(pools):
    pools.answers["POST pool"] = [refuse(403, "at most 2 pools")]
    with pytest.raises(PermissionError, match=r"^at most 2 pools$"):
        await start()
    assert asked(pools, "DELETE") == []
    assert not certificate_file(Lab("ada"), "big").exists()


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (401, PoolNotAllowed, token_refused("not you")),
        (404, PoolError, "The service did not start the Dask pool 'big': not you"),
        (422, PoolError, "The service did not start the Dask pool 'big': not you"),
        (409, PoolError, "The service did not start the Dask pool 'big': not you"),
    ],
)
async def test_other_refusals_say_what_the_service_says(pools, status, kind, text):
    pools.answers["POST pool"] = [refuse(status, "not you")] * 3
    with pytest.raises(kind) as error:
        await start()
    assert str(error.value) == text


async def test_a_pool_that_fails_raises_its_stage_and_reason_at_once(pools):
    pools.held = {"status": "failed", "stage": "pulling", "reason": "ErrImagePull", "message": "no such image"}
    pools.events = [("info", "Pulling dask:latest"), ("failed", "no such image")]
    cluster = WasmSpawnerCluster("big", asynchronous=True, quiet=True)
    begun = time.monotonic()
    with pytest.raises(PoolError, match=r"did not start: no such image \(stage 'pulling', ErrImagePull\)"):
        await cluster
    assert time.monotonic() - begun < 3
    assert cluster.status.name == "closed"
    assert asked(pools, "DELETE") == ["DELETE /labs/ada/dask-pools/big"]
    assert not certificate_file(Lab("ada"), "big").exists()


async def test_progress_is_in_the_log_and_a_late_start_says_how_far_it_came(pools):
    pools.held = {"status": "starting", "stage": "scheduling", "message": "no node has room"}
    pools.events = [("progress", "20"), ("info", "Waiting for a node")]
    cluster = WasmSpawnerCluster("big", asynchronous=True, quiet=True, timeout=1)
    with pytest.raises(PoolError, match=r"within 1 seconds: no node has room \(stage 'scheduling'\)"):
        await cluster
    assert [line for _, line in cluster._cluster_manager_logs] == ["Waiting for a node"]


async def test_a_name_that_is_taken_names_the_remedy(pools):
    pools.held = RUNNING
    await pools.spawn("big", None, BODY)
    with pytest.raises(PoolExists, match=r"from_name\('big'\)"):
        await start()
    assert asked(pools, "DELETE") == []


async def test_the_name_of_a_pool_that_ends_is_waited_for(pools):
    pools.held = {"status": "terminating"}
    await pools.spawn("big", None, BODY)
    starting = asyncio.create_task(start())
    await until(lambda: len(asked(pools, "GET")) > 1)
    pools.held = {"status": "failed", "message": "the second"}
    del pools.pools["big"]
    with pytest.raises(PoolError, match="the second"):
        await starting


async def test_a_lost_answer_to_the_request_is_no_conflict(pools):
    async def lose(request):
        await pools.spawn("big", None, pools.requests[-1].body)
        request.transport.abort()
        return web.Response()

    pools.held = {"status": "failed", "message": "reached"}
    pools.answers["POST pool"] = [lose]
    with pytest.raises(PoolError, match="reached"):
        await start()


async def test_a_lost_answer_leaves_the_pool_of_another_notebook_alone(pools):
    async def lose(request):
        request.transport.abort()
        return web.Response()

    pools.held = {"status": "running"}
    await pools.spawn("big", None, BODY)
    pools.answers["POST pool"] = [lose]
    with pytest.raises(PoolExists):
        await start()
    assert pools.only().status != "terminating"


async def test_a_service_that_restarts_is_asked_again(pools):
    pools.held = {"status": "failed", "message": "reached"}
    pools.answers["POST pool"] = [refuse(503, "")] * 2
    pools.answers["GET big"] = [refuse(502, "")]
    with pytest.raises(PoolError, match="reached"):
        await start()


async def test_an_interrupted_start_deletes_the_pool(pools):
    pools.held = {"status": "starting"}
    starting = asyncio.create_task(start())
    await until(lambda: asked(pools, "GET"))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert asked(pools, "DELETE") == ["DELETE /labs/ada/dask-pools/big"]


async def test_what_is_asked_for_is_sent(pools):
    pools.held = {"status": "failed"}
    with pytest.raises(PoolError):
        await start(minimum=1, maximum=4, options={"size": "large"}, env={"A": "b"}, idle_timeout=600, outlive_lab=True)
    body = pools.requests[0].body
    tls = body.pop("tls")
    assert tls["certificate"].startswith("-----BEGIN CERTIFICATE-----")
    assert "PRIVATE KEY" in tls["key"]
    assert body == {
        "workers": {"minimum": 1, "maximum": 4},
        "options": {"size": "large"},
        "env": {"A": "b"},
        "idle_timeout": 600,
        "outlive_lab": True,
    }


async def test_from_name_needs_a_pool_and_its_certificate(pools):
    Certificate.new().save(Lab("ada"), "gone")
    pools.held = RUNNING
    await pools.spawn("big", None, BODY)
    with pytest.raises(PoolUnknown, match=r"no Dask pool 'gone'.* This lab has the pools big\."):
        await WasmSpawnerCluster.from_name("gone", asynchronous=True)
    assert not certificate_file(Lab("ada"), "gone").exists()
    with pytest.raises(PoolError, match=r"ada\+\+big\.pem.*stop_pool\('big'\)"):
        await WasmSpawnerCluster.from_name("big", asynchronous=True)


def test_a_lab_without_the_variables_is_told_which(monkeypatch):
    for name in ("WASMSPAWNER_URL", "WASMSPAWNER_TOKEN", "WASMSPAWNER_TOKEN_FILE", "JUPYTERHUB_USER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NoService, match="WASMSPAWNER_URL"):
        WasmSpawnerCluster()
    monkeypatch.setenv("WASMSPAWNER_URL", "http://127.0.0.1:1/")
    with pytest.raises(NoService, match="JUPYTERHUB_USER"):
        list_pools()
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    with pytest.raises(NoService, match="WASMSPAWNER_TOKEN_FILE or WASMSPAWNER_TOKEN"):
        stop_pool("big")
    monkeypatch.setenv("WASMSPAWNER_TOKEN", "t0")
    monkeypatch.setenv("JUPYTERHUB_SERVER_NAME", "gpu")
    assert LabService.of_environment().lab_url == "http://127.0.0.1:1/labs/ada/servers/gpu"


@pytest.mark.parametrize(
    ("prefix", "link"),
    [("", "http://10.1.2.3:8787/status"), ("/user/ada/", "/user/ada/proxy/10.1.2.3:8787/status")],
)
async def test_the_dashboard_is_shown_through_the_lab(pools, monkeypatch, prefix, link):
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", prefix)
    cluster = WasmSpawnerCluster("big", asynchronous=True)
    assert cluster.dashboard_link == ""
    cluster._pool = PoolState("big", "running", dashboard_url="http://10.1.2.3:8787", workers_message="<no room>")
    assert cluster.dashboard_link == link
    assert "&lt;no room&gt;" in cluster._repr_html_()
    await cluster.close()
    assert pools.requests == []


# Sizes


@pytest.mark.parametrize(
    ("number", "minimum", "maximum", "size"),
    [
        (None, None, None, 0),
        (4, None, None, 4),
        (None, None, 8, {"minimum": 0, "maximum": 8}),
        (None, 2, 8, {"minimum": 2, "maximum": 8}),
        (4, 1, 8, None),
        (-1, None, None, None),
        (True, None, None, None),
        (1.5, None, None, None),
        (None, 3, None, None),
        (None, 3, 2, None),
    ],
)
def test_sizes_are_checked(number, minimum, maximum, size):
    if size is None:
        with pytest.raises(ValueError):
            pool_size(number, minimum, maximum)
    else:
        assert pool_size(number, minimum, maximum) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [("4", 4), ("0-8", {"minimum": 0, "maximum": 8}), ("8-2", None), ("-1", None), ("a", None), ("1-", None)],
)
def test_sizes_of_the_command_are_parsed(text, size):
    if size is None:
        with pytest.raises(ValueError):
            parse_size(text)
    else:
        assert parse_size(text) == size


# Certificates


def test_a_certificate_is_its_own_authority_by_the_strict_rules(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    certificate = Certificate.new()
    certificate.save(Lab("ada", "gpu"), "a/b")
    file = certificate_file(Lab("ada", "gpu"), "a/b")
    assert file == tmp_path / "wasmspawner/dask/ada+gpu+a%2Fb.pem"
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    assert Certificate.load(Lab("ada", "gpu"), "a/b") == certificate

    sides = []
    for purpose in (ssl.Purpose.SERVER_AUTH, ssl.Purpose.CLIENT_AUTH):
        context = ssl.create_default_context(purpose, cafile=file)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(file)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        server_side = purpose is ssl.Purpose.CLIENT_AUTH
        sides.append((context.wrap_bio(incoming, outgoing, server_side=server_side), incoming, outgoing))
    done = set()
    for _ in range(6):
        for (side, _, outgoing), (_, other, _) in (sides, sides[::-1]):
            try:
                side.do_handshake()
                done.add(side.server_side)
            except ssl.SSLWantReadError:
                pass
            other.write(outgoing.read())
    assert done == {True, False}

    forget_certificate(Lab("ada", "gpu"), "a/b")
    forget_certificate(Lab("ada", "gpu"), "a/b")
    assert not file.exists()


def test_another_file_is_no_certificate(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    file = certificate_file(Lab("ada"), "big")
    file.parent.mkdir(parents=True)
    file.write_text("-----BEGIN CERTIFICATE-----\n")
    with pytest.raises(ValueError, match="no certificate with its key"):
        Certificate.load(Lab("ada"), "big")


# Functions and commands. They are synchronous, and run in a thread beside the fake's event loop.

BODY = {"workers": {"minimum": 0, "maximum": 8}, "env": {}, "idle_timeout": 600}


async def test_pools_are_listed_scaled_and_stopped_also_within_an_event_loop(pools):
    pools.held = RUNNING
    await pools.spawn("big", None, BODY)

    async def within_a_loop():
        return list_pools()

    (pool,) = await asyncio.to_thread(lambda: asyncio.run(within_a_loop()))
    assert repr(pool) == "<DaskPool 'big': running, 0 of 0 workers, scale 0-8>"
    pools.note = "the limit is 2"
    assert (await asyncio.to_thread(scale_pool, "big", 2)).note == "the limit is 2"
    await asyncio.to_thread(stop_pool, "big")
    assert pools.pools == {}
    for call in (lambda: stop_pool("big"), lambda: scale_pool("big", 1)):
        with pytest.raises(PoolUnknown, match="no Dask pool 'big'"):
            await asyncio.to_thread(call)
    pools.answers["GET dask-pools"] = [refuse(403, "not yours")]
    with pytest.raises(PermissionError, match="not yours"):
        await asyncio.to_thread(list_pools)


async def test_the_command_lists_scales_and_stops(pools, capsys):
    async def run(*words):
        code = await asyncio.to_thread(main, ["dask", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    assert (await run("list"))[2].startswith("This lab has no Dask pools")
    pools.held = RUNNING
    await pools.spawn("big", None, BODY)
    assert await run("list") == (
        0,
        "NAME  STATUS   READY  SCALE  IDLE END  SCHEDULER\nbig   running  0/0    0-8    600 s     tls://127.0.0.1:1\n",
        "",
    )
    pools.note = "at most 2 workers"
    assert await run("scale", "big", "3") == (
        0,
        "The pool big is to have 3 workers; 0 are ready.\nat most 2 workers\n",
        "",
    )
    assert (await run("scale", "big", "x"))[0] == 1
    assert await run("stop", "big") == (0, "The pool big is being stopped.\n", "")
    code, _, error = await run("stop", "big")
    assert (code, error.startswith("wasmspawner: There is no Dask pool 'big'")) == (1, True)


async def test_the_command_shows_and_scales_groups(pools, capsys):
    pools.held = RUNNING
    workers = [{"name": "cpu", "workers": 4}, {"name": "gpu", "workers": {"minimum": 0, "maximum": 2}}]
    await pools.spawn("mixed", None, {"groups": workers, "env": {}, "idle_timeout": None})
    await asyncio.to_thread(main, ["dask", "list"])
    assert capsys.readouterr().out.splitlines() == [
        "NAME   STATUS   READY  SCALE  IDLE END  SCHEDULER",
        "mixed  running  0/4    4-6    -         tls://127.0.0.1:1",
        "  cpu           0/4    4",
        "  gpu           0/0    0-2",
    ]
    await asyncio.to_thread(main, ["dask", "scale", "mixed", "1", "--group", "gpu"])
    assert capsys.readouterr().out == "The group gpu of the pool mixed is to have 1 workers; 0 are ready.\n"
    assert await asyncio.to_thread(main, ["dask", "scale", "mixed", "1", "--group", "tpu"]) == 1
    assert "there is no such group" in capsys.readouterr().err


async def test_lists_need_no_dask():
    code = "import sys, wasmspawner.dask_command; assert not {'distributed', 'dask', 'cryptography'} & set(sys.modules)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert await process.wait() == 0
