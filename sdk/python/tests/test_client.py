import asyncio
from contextlib import aclosing

import pytest
from conftest import Stream, accept, lab, problem, refuse

from wasmspawner.client import ClientOptions, Lab, ServiceClient
from wasmspawner.errors import Refused, Unreachable

ADA = Lab("ada")
EVENTS = "GET /labs/ada/events"


@pytest.mark.parametrize(
    ("lab", "path"),
    [
        (Lab("ada"), "/labs/ada"),
        (Lab("ada.lovelace@example.org"), "/labs/ada.lovelace%40example.org"),
        (Lab("ada", "gpu"), "/labs/ada/servers/gpu"),
        (Lab("../admin"), "/labs/..%2Fadmin"),
        (Lab(".."), "/labs/%2E%2E"),
        (Lab("å b", "x/y"), "/labs/%C3%A5%20b/servers/x%2Fy"),
    ],
)
def test_paths(lab, path):
    assert lab.path == path


async def test_paths_arrive_as_they_were_made(client, service):
    await client.lab(Lab("../a b@c", ".."), "t")
    assert service.asked() == ["GET /labs/..%2Fa%20b%40c/servers/%2E%2E"]


async def collect(client):
    async with aclosing(client.events(ADA, "t")) as batches:
        return [event.data async for batch in batches for event in batch]


async def test_a_stream_ends_with_its_operation(client, service):
    service.on(
        EVENTS, Stream("retry: 10\n\n", "id: j-1\nevent: info\ndata: a\n\n", "id: j-2\nevent: complete\ndata: b\n\n")
    )
    assert await collect(client) == ["a", "b"]
    assert service.requests[0].headers["Accept"] == "text/event-stream"


@pytest.mark.parametrize("cut", [True, False], ids=["torn", "closed"])
async def test_a_broken_stream_is_resumed_after_the_last_event(client, service, cut):
    service.on(
        EVENTS,
        Stream("retry: 10\n\nid: j-1\nevent: info\ndata: a\n\nid: j-2\nevent: info\ndata: lo", cut=cut),
        refuse(503, "starting"),
        Stream("id: j-2\nevent: info\ndata: b\n\nid: j-3\nevent: failed\ndata: c\n\n"),
    )
    assert await collect(client) == ["a", "b", "c"]
    assert [r.headers.get("Last-Event-ID") for r in service.requests] == [None, "j-1", "j-1"]


async def test_a_silent_stream_is_opened_anew(service):
    client = ServiceClient(ClientOptions(api_url=service.url, silence_timeout=0.1))
    never = asyncio.Event()
    service.on(EVENTS, Stream("retry: 10\n\n", wait=never), Stream("event: complete\ndata: b\n\n"))
    assert await collect(client) == ["b"]
    never.set()
    await client.close()


async def test_a_refused_stream_is_not_insisted_upon(client, service):
    service.on(EVENTS, refuse(404, "no record"))
    with pytest.raises(Refused):
        await collect(client)
    assert len(service.requests) == 1


async def test_leaving_a_stream_closes_its_connection(client, service):
    gone = asyncio.Event()

    class Endless(Stream):
        async def send(self, request):
            try:
                return await super().send(request)
            finally:
                gone.set()

    service.on(EVENTS, Endless(*[f"event: info\ndata: {'x' * 60000}\n\n"] * 1000))
    async with aclosing(client.events(ADA, "t")) as batches:
        await anext(batches)
    async with asyncio.timeout(5):
        await gone.wait()


async def test_a_request_waits_out_a_restart(client, service):
    service.on("DELETE /labs/ada", refuse(503, "starting"), accept(202))
    assert await client.delete(ADA, "t") is True
    assert len(service.requests) == 2


async def test_a_service_that_stays_away_is_reported():
    client = ServiceClient(ClientOptions(api_url="http://127.0.0.1:9", retry_for=0.3))
    with pytest.raises(Unreachable):
        await client.delete(ADA, "t")
    await client.close()


async def test_an_expired_timer_alone_is_no_reason_to_give_up(service):
    client = ServiceClient(ClientOptions(api_url=service.url, retry_for=0))
    service.on("DELETE /labs/ada", refuse(503, "starting"), refuse(503, "starting"), accept(202))
    assert await client.delete(ADA, "t") is True
    await client.close()


async def test_a_spawn_that_may_have_been_accepted_is_not_repeated(client, service):
    class Abort(Stream):
        async def send(self, request):
            request.transport.abort()
            return problem(500, "never seen")

    service.on("POST /labs/ada/spawn", Abort())
    with pytest.raises(Unreachable):
        await client.spawn(ADA, "t", {}, {})
    assert len(service.requests) == 1


async def test_no_lab_is_none_but_an_unknown_page_is_not(client, service):
    assert await client.lab(ADA, "t") is None
    service.on("GET /labs/ada", refuse(404, ""))
    assert await client.lab(ADA, "t") is None
    from aiohttp import web

    service.on("GET /labs/ada", lambda: web.Response(status=404, text="<html>wrong door</html>"))
    with pytest.raises(Refused):
        await client.lab(ADA, "t")
    unknown_route = {"detail": [{"loc": [], "msg": "there is no such route", "type": "unknown_route"}]}
    service.on("GET /labs/ada", lambda: web.json_response(unknown_route, status=404))
    with pytest.raises(Refused):
        await client.lab(ADA, "t")
    service.on("GET /labs/ada", lambda: web.Response(text="[]"))
    with pytest.raises(Unreachable):
        await client.lab(ADA, "t")


async def test_requests_are_bounded_and_streams_do_not_count(service):
    client = ServiceClient(ClientOptions(api_url=service.url, max_requests=1))
    never = asyncio.Event()
    service.on(EVENTS, Stream("event: info\ndata: a\n\n", wait=never))
    service.on("GET /labs/ada", lab("running"))
    async with aclosing(client.events(ADA, "t")) as one, aclosing(client.events(ADA, "t")) as two:
        await anext(one)
        await anext(two)
        states = await asyncio.gather(*(client.lab(ADA, "t") for _ in range(5)))
    assert [state["status"] for state in states] == ["running"] * 5
    never.set()
    await client.close()
