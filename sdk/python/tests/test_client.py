import asyncio
from contextlib import aclosing

import pytest
from aiohttp import web
from conftest import Lost, Stream, accept, lab, page, refuse

from wasmspawner.client import ClientOptions, ServiceClient
from wasmspawner.errors import Refused, Unreachable
from wasmspawner.lab import Lab

ADA = Lab("ada")
EVENTS = "GET /labs/ada/events"


def test_each_server_has_a_form_of_its_own():
    assert ADA.form_path == "/spawn-form/ada"
    assert Lab("ada", "gpu").form_path == "/spawn-form/ada/servers/gpu"


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
def test_each_lab_has_its_path(lab, path):
    assert lab.path == path


async def test_an_escaped_path_reaches_the_service_unchanged(client, service):
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


async def test_a_refused_stream_is_not_retried(client, service):
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


async def test_a_request_is_retried_while_the_service_restarts(client, service):
    service.on("GET /labs/ada", refuse(503, "starting"), lab("running"))
    assert (await client.lab(ADA, "t")).status == "running"
    assert len(service.requests) == 2


async def test_a_service_that_stays_away_is_reported():
    client = ServiceClient(ClientOptions(api_url="http://127.0.0.1:9", retry_for=0.3))
    with pytest.raises(Unreachable) as raised:
        await client.lab(ADA, "t")
    assert raised.value.unsent
    await client.close()


@pytest.mark.parametrize(
    ("answer", "unsent"),
    [(Lost(), False), (page(502), False), (page(504), False), (page(503), True), (refuse(503, "starting"), True)],
)
async def test_a_spawn_is_one_attempt_and_says_whether_it_may_have_been_accepted(client, service, answer, unsent):
    service.on("POST /labs/ada/spawn", answer)
    with pytest.raises(Unreachable) as raised:
        await client.spawn(ADA, "t", {}, {})
    assert raised.value.unsent is unsent
    assert len(service.requests) == 1


async def test_a_spawn_that_takes_too_long_may_have_been_accepted(service):
    client = ServiceClient(ClientOptions(api_url=service.url, request_timeout=0.1))
    never = asyncio.Event()
    service.on("POST /labs/ada/spawn", Stream(wait=never))
    with pytest.raises(Unreachable) as raised:
        await client.spawn(ADA, "t", {}, {})
    assert not raised.value.unsent
    never.set()
    await client.close()


async def test_a_redirect_of_a_proxy_does_not_count_as_accepted(client, service):
    service.on("POST /labs/ada/spawn", lambda: web.Response(status=302, headers={"Location": "/login"}))
    with pytest.raises(Refused):
        await client.spawn(ADA, "t", {}, {})


async def test_a_request_on_a_connection_that_was_closed_is_sent_again(client, service):
    service.on("GET /labs/ada", lab("running"), Lost(), lab("terminating"))
    service.on("DELETE /labs/ada", Lost(), accept(202))
    assert (await client.lab_now(ADA, "t")).status == "running"
    assert (await client.lab_now(ADA, "t")).status == "terminating"
    assert await client.delete(ADA, "t") is True
    assert service.asked() == ["GET /labs/ada"] * 3 + ["DELETE /labs/ada"] * 2


async def test_idle_connections_are_closed_before_an_ingress_closes_them(client):
    assert client._session.connector._keepalive_timeout <= 15


async def test_an_unknown_lab_is_none_and_an_unknown_route_is_an_error(client, service):
    assert await client.lab(ADA, "t") is None
    for answer in (page(404), refuse(404, "there is no such route", type_="unknown_route"), page(403)):
        service.on("GET /labs/ada", answer)
        with pytest.raises(Refused):
            await client.lab(ADA, "t")


@pytest.mark.parametrize("text", ["[]", "<html>", '{"status": 3}', '{"username": "ada"}', "null"])
async def test_an_unreadable_answer_counts_as_no_answer(client, service, text):
    service.on("GET /labs/ada", lambda: web.Response(text=text))
    with pytest.raises(Unreachable):
        await client.lab_now(ADA, "t")


async def test_requests_are_bounded_and_streams_do_not_count(service):
    client = ServiceClient(ClientOptions(api_url=service.url, max_requests=1))
    never = asyncio.Event()
    service.on(EVENTS, Stream("event: info\ndata: a\n\n", wait=never))
    service.on("GET /labs/ada", lab("running"))
    async with aclosing(client.events(ADA, "t")) as one, aclosing(client.events(ADA, "t")) as two:
        await anext(one)
        await anext(two)
        states = await asyncio.gather(*(client.lab(ADA, "t") for _ in range(5)))
    assert [state.status for state in states] == ["running"] * 5
    never.set()
    await client.close()


async def test_other_requests_do_not_wait_for_polls(service):
    client = ServiceClient(ClientOptions(api_url=service.url, max_requests=1, max_status_requests=2))
    hold = asyncio.Event()
    service.on("GET /labs/ada", Stream('{"status": "running"}', wait=hold))
    service.on("POST /labs/ada/spawn", accept(303))
    polls = [asyncio.create_task(client.polled_lab(ADA, "t")) for _ in range(1000)]
    await service.has_been_asked("GET /labs/ada", times=2)
    async with asyncio.timeout(5):
        await client.spawn(ADA, "t", {}, {})
    assert service.asked().count("GET /labs/ada") == 2
    hold.set()
    assert {state.status for state in await asyncio.gather(*polls)} == {"running"}
    await client.close()


async def test_a_stream_that_a_proxy_refuses_is_opened_again(client, service):
    service.on(EVENTS, page(404), Stream("event: complete\ndata: b\n\n"))
    assert await collect(client) == ["b"]


async def test_without_time_left_a_stream_is_given_up_at_once(service):
    client = ServiceClient(ClientOptions(api_url="http://127.0.0.1:9"))
    with pytest.raises(Unreachable):
        async with aclosing(client.events(ADA, "t", give_up_after=0)) as batches:
            await anext(batches)
    await client.close()
