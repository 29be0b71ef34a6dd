import asyncio

import pytest
from conftest import Lost, Stream, accept, lab, page, refuse, seconds_ago

from wasmspawner.lab_error import LabError

SPAWN, EVENTS, LAB, DELETE = "POST /labs/ada/spawn", "GET /labs/ada/events", "GET /labs/ada", "DELETE /labs/ada"
URL = "http://10.0.0.7:8888"
STARTED, STOPPED = Stream("event: complete\ndata: Ready\n\n"), Stream("event: complete\ndata: Stopped\n\n")
GONE = refuse(404, "no lab")
AMBIGUOUS = {"lost": Lost(), "bad gateway": page(502), "gateway timeout": page(504)}
EXISTS = refuse(409, "there is a lab", type_="lab_exists")
SPAWNING = refuse(409, "a spawn is under way", type_="spawn_in_progress")
STOPPING = refuse(409, "a stop is under way", type_="stop_in_progress")


def began(status, ago, **fields):
    """A lab that began this long before it is read."""
    return lambda: lab(status, url=URL, started_at=seconds_ago(ago), **fields)()


ambiguous = pytest.mark.parametrize("answer", AMBIGUOUS.values(), ids=AMBIGUOUS)


@ambiguous
@pytest.mark.parametrize("status", ["starting", "running"])
async def test_an_accepted_spawn_whose_answer_was_lost_is_followed(service, spawner, answer, status):
    service.on(SPAWN, answer)
    service.on(LAB, began(status, 0), began("running", 0))
    service.on(EVENTS, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, LAB, EVENTS, LAB]


@ambiguous
async def test_a_spawn_that_was_not_accepted_is_sent_again(service, spawner, answer):
    service.on(SPAWN, answer, accept(303))
    service.on(LAB, GONE, began("running", 0))
    service.on(EVENTS, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, LAB, SPAWN, EVENTS, LAB]


async def test_after_a_request_that_takes_too_long_the_lab_is_read(service, spawner):
    never = asyncio.Event()
    spawner.request_timeout = 0.5
    service.on(SPAWN, Stream(before=never))
    service.on(LAB, began("starting", 0), began("running", 0))
    service.on(EVENTS, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, LAB, EVENTS, LAB]
    never.set()


@ambiguous
async def test_a_lab_older_than_the_lost_request_is_stopped(service, spawner, answer):
    service.on(SPAWN, answer, EXISTS, accept(303))
    service.on(LAB, began("running", 600), began("running", 600), GONE, began("running", 0))
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, LAB, SPAWN, LAB, DELETE, EVENTS, LAB, SPAWN, EVENTS, LAB]


@pytest.mark.parametrize("conflict", [EXISTS, SPAWNING], ids=["lab_exists", "spawn_in_progress"])
@ambiguous
async def test_a_conflict_with_our_own_earlier_request_stops_no_lab(service, spawner, answer, conflict):
    """The service was still deciding when the proxy's timeout expired: at first no lab is visible."""
    service.on(SPAWN, answer, conflict)
    service.on(LAB, GONE, began("starting", 0), began("running", 0))
    service.on(EVENTS, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, LAB, SPAWN, LAB, EVENTS, LAB]


async def test_a_spawn_that_a_proxy_sent_twice_stops_no_lab(service, spawner):
    service.on(SPAWN, SPAWNING)
    service.on(LAB, began("starting", 0), began("running", 0))
    service.on(EVENTS, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, LAB, EVENTS, LAB]


async def test_an_older_spawn_is_stopped(service, spawner):
    service.on(SPAWN, SPAWNING, accept(303))
    service.on(LAB, began("starting", 600), GONE, began("running", 0))
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, LAB, DELETE, EVENTS, LAB, SPAWN, EVENTS, LAB]


async def test_a_stop_under_way_is_waited_for(service, spawner):
    service.on(SPAWN, STOPPING, accept(303))
    service.on(LAB, GONE, began("running", 0))
    service.on(EVENTS, STOPPED, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, EVENTS, LAB, SPAWN, EVENTS, LAB]


async def test_a_spawn_waits_for_the_rest_of_a_lab_whose_pod_is_gone(service, spawner):
    service.on(SPAWN, STOPPING, STOPPING, accept(303))
    service.on(LAB, lab("terminating", pod="missing"), GONE, began("running", 0))
    service.on(EVENTS, STOPPED, STOPPED, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, EVENTS, LAB] * 2 + [SPAWN, EVENTS, LAB]


async def test_a_stop_that_does_not_end_is_an_error(service, spawner):
    spawner.stop_timeout = 1
    service.on(SPAWN, STOPPING)
    service.on(LAB, lab("terminating", pod="missing"))
    service.on(EVENTS, STOPPED)
    with pytest.raises(LabError) as raised:
        await spawner.start()
    assert (raised.value.status_code, raised.value.jupyterhub_message) == (409, "a stop is under way")


async def test_an_unknown_conflict_is_an_error(service, spawner):
    service.on(SPAWN, refuse(409, "something new", type_="novelty"))
    with pytest.raises(LabError, match="something new"):
        await spawner.start()
    assert service.asked() == [SPAWN]


async def test_a_spawn_is_sent_again_after_retry_after(service, spawner):
    spawner.retry_for = 5
    service.on(SPAWN, refuse(503, "starting", **{"Retry-After": "1"}), accept(303))
    service.on(LAB, began("running", 0))
    service.on(EVENTS, STARTED)
    begun = asyncio.get_running_loop().time()
    assert await spawner.start() == URL
    assert asyncio.get_running_loop().time() - begun >= 1
    assert service.asked() == [SPAWN, SPAWN, EVENTS, LAB]


async def test_an_ordinary_spawn_sends_three_requests(service, spawner):
    service.on(SPAWN, accept(303))
    service.on(LAB, began("running", 0))
    service.on(EVENTS, STARTED)
    assert await spawner.start() == URL
    assert service.asked() == [SPAWN, EVENTS, LAB]


@pytest.mark.parametrize(("status", "ours"), [("starting", True), ("running", False)])
async def test_without_a_date_only_a_starting_lab_is_ours(service, spawner, status, ours):
    service.on(SPAWN, page(502), EXISTS, accept(303))
    service.on(LAB, lab(status, url=URL), lab("running", url=URL), GONE, lab("running", url=URL))
    service.on(DELETE, accept(202))
    service.on(EVENTS, *([STARTED] if ours else [STOPPED, STARTED]))
    assert await spawner.start() == URL
    assert service.asked().count(DELETE) == (0 if ours else 1)
