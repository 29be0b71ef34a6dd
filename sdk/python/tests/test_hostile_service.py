"""What a service that was taken over can do to JupyterHub and to labs by its answers."""

import asyncio
from contextlib import aclosing

import pytest
from aiohttp import web
from conftest import Stream, accept, lab, refuse
from hostile_answers import BAD_URLS, UNUSABLE, Endless, compressed, text

from wasmspawner import retries
from wasmspawner.dask.pool_api import PoolApi
from wasmspawner.errors import Refused, ServiceError, Unreachable
from wasmspawner.kernel_api import KernelApi
from wasmspawner.lab import Lab
from wasmspawner.lab_service import LabService
from wasmspawner.sse import EventStreamParser
from wasmspawner.web_address import WebAddress

ADA = Lab("ada")
MIB = 1024 * 1024
EVENTS = "GET /labs/ada/events"


async def follow(client):
    async with aclosing(client.events(ADA, "t", give_up_after=0)) as batches:
        return [event.data async for batch in batches for event in batch]


def kernels(service):
    return KernelApi(service.url, ADA, "k1", lambda: "t")


def pools(service):
    return PoolApi(LabService(service.url, ADA, token="t"))


# Each thing that is asked of the service: its route, the request, and the most bytes that are read.
REQUESTS = {
    "form": ("GET /spawn-form/ada", lambda client, service: client.spawn_form(ADA, "t"), 4 * MIB),
    "list": ("GET /lab-status", lambda client, service: client.lab_status("t"), 16 * MIB),
    "lab": ("GET /labs/ada", lambda client, service: client.lab(ADA, "t"), MIB),
    "spawn": ("POST /labs/ada/spawn", lambda client, service: client.spawn(ADA, "t", {}, {}), MIB),
    "stop": ("DELETE /labs/ada", lambda client, service: client.delete(ADA, "t"), MIB),
    "volumes": ("DELETE /labs/ada/volumes", lambda client, service: client.release_volumes(ADA, "t"), MIB),
    "kernel": ("GET /labs/ada/kernels/k1", lambda client, service: kernels(service).get(), MIB),
    "restart": ("POST /labs/ada/kernels/k1/restart", lambda client, service: kernels(service).restart(), MIB),
    "pools": ("GET /labs/ada/dask-pools", lambda client, service: pools(service).names(), MIB),
    "pool": ("GET /labs/ada/dask-pools/p", lambda client, service: pools(service).get("p"), MIB),
    "scale": ("POST /labs/ada/dask-pools/p/scale", lambda client, service: pools(service).scale("p", 1), MIB),
}
# The body of an answer to a spawn or a stop has no meaning, and a form is any text.
DECODED = {name: row for name, row in REQUESTS.items() if name not in ("form", "spawn", "stop")}


@pytest.mark.parametrize("status", [200, 403, 503])
@pytest.mark.parametrize(("route", "ask", "most"), REQUESTS.values(), ids=REQUESTS)
async def test_an_answer_is_read_up_to_a_limit(client, service, route, ask, most, status):
    answer = Endless(status)
    service.on(route, answer)
    with pytest.raises(Unreachable, match="longer than"):
        await ask(client, service)
    # Each attempt ends soon after the limit: buffers of the connection hold a few MiB.
    assert answer.sent < service.asked().count(route) * (most + 8 * MIB)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
@pytest.mark.parametrize(("route", "ask", "most"), REQUESTS.values(), ids=REQUESTS)
async def test_a_compressed_answer_is_not_unpacked(client, service, route, ask, most, encoding):
    service.on(route, compressed(b"{}", encoding))
    with pytest.raises(Unreachable, match="compressed"):
        await ask(client, service)
    assert service.requests[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize(("route", "ask", "most"), DECODED.values(), ids=DECODED)
async def test_whatever_is_wrong_with_an_answer_is_an_error_of_the_service(client, service, route, ask, most, answer):
    service.on(route, answer)
    with pytest.raises(ServiceError):
        await ask(client, service)


@pytest.mark.parametrize(
    "body",
    ['{"name": "p", "status": "x", "workers": {"ready": 1e999}}', '{"name": "p", "status": "x", "workers": [1]}']
    + [f'{{"name": "p", "status": "x", "dashboard_url": "{url}"}}' for url in BAD_URLS if str(url).isprintable()],
)
async def test_a_pool_with_impossible_numbers_or_urls_is_an_error(service, body):
    service.on("GET /labs/ada/dask-pools/p", text(body))
    with pytest.raises(Unreachable):
        await pools(service).get("p")


@pytest.mark.parametrize(
    "fields", ['"process": {"number": 1e999}', '"process": {"exit_code": "x"}', '"process": 7', '"connection": 7']
)
async def test_a_kernel_with_impossible_numbers_is_an_error(service, fields):
    service.on("GET /labs/ada/kernels/k1", text(f'{{"status": "running", {fields}}}'))
    with pytest.raises(Unreachable):
        await kernels(service).get()


async def test_a_date_beyond_all_calendars_is_ignored(client, service):
    def answer():
        return web.json_response({"status": "running"}, headers={"Date": "Sat, 21 Nov 99999999999 10:20:12 GMT"})

    service.on("GET /labs/ada", answer)
    assert (await client.lab_now(ADA, "t")).status == "running"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_stream_follows_no_redirect(client, service, status):
    service.on(EVENTS, lambda: web.Response(status=status, headers={"Location": service.url + "/elsewhere"}))
    service.on("GET /elsewhere", Stream("event: complete\ndata: b\n\n"))
    with pytest.raises(Refused):
        await follow(client)
    with pytest.raises(Refused):
        async with aclosing(kernels(service)._requests.events("/events", EventStreamParser())) as events:
            await anext(events)
    assert "GET /elsewhere" not in service.asked()


async def test_a_compressed_stream_is_not_unpacked(client, service):
    service.on(EVENTS, compressed(b"event: complete\ndata: b\n\n"))
    with pytest.raises(Unreachable, match="compressed"):
        await follow(client)


async def test_no_answer_makes_a_stream_wait_for_ever_or_not_at_all(client, service, monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(retries.asyncio, "sleep", sleep)
    service.on(
        EVENTS,
        refuse(503, "later", **{"Retry-After": "999999999"}),
        Stream("retry: 999999999\n\n"),
        Stream("retry: 1\n\nevent: info\ndata: a\n\n"),
        Stream("event: complete\ndata: b\n\n"),
    )
    async with aclosing(client.events(ADA, "t")) as batches:
        assert [event.data async for batch in batches for event in batch] == ["a", "b"]
    assert slept[0] == max(slept) == 60
    assert min(slept) > 0.05 / 20  # the tests' pauses are a twentieth of the usual ones


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://10.0.0.7:8888", "http://10.0.0.7:8888"),
        ("http://[fd00::7]:8888/", "http://[fd00::7]:8888"),
        ("https://lab-ada.labs.svc/user/ada/", "https://lab-ada.labs.svc:443"),
        ("HTTP://Lab_1.svc.", "http://lab_1.svc.:80"),
    ],
)
def test_a_url_has_an_address(url, address):
    assert str(WebAddress.of_url(url)) == address


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_url_without_a_possible_host_and_port_has_none(url):
    with pytest.raises(ValueError, match=r"."):
        WebAddress.of_url(str(url))


async def test_the_event_loop_goes_on_while_a_long_answer_is_read(client, service):
    service.on("GET /lab-status", Endless())
    service.on("GET /labs/bob", lab("running"))
    listing = asyncio.create_task(client.lab_status("t"))
    await service.has_been_asked("GET /lab-status")
    assert (await client.lab_now(Lab("bob"), "t")).status == "running"
    assert not listing.done()
    with pytest.raises(Unreachable):
        await listing


async def test_a_spawn_with_an_unusable_answer_may_have_been_accepted(client, service):
    service.on("POST /labs/ada/spawn", Endless(303))
    with pytest.raises(Unreachable) as raised:
        await client.spawn(ADA, "t", {}, {})
    assert not raised.value.unsent
    service.on("POST /labs/ada/spawn", accept(303))
    await client.spawn(ADA, "t", {}, {})
