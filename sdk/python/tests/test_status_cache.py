import asyncio
import logging

import pytest
from aiohttp import web
from conftest import Lost, Stream, accept, lab, page, refuse
from hostile_answers import UNUSABLE

from wasmspawner.client import ClientOptions, ServiceClient
from wasmspawner.lab import Lab
from wasmspawner.status_cache import StatusCache

LIST, ADA_NOW = "GET /lab-status", "GET /labs/ada"
ADA, BOB, GPU = Lab("ada"), Lab("bob"), Lab("ada", "gpu")
GONE = refuse(404, "no lab")


def entry(lab, status, pod="present"):
    return {"username": lab.user, "server": lab.server, "status": status, "pod": pod, "url": "http://x", "job_id": "j"}


def report(revision, *entries, complete=True):
    return lambda: web.json_response({"revision": revision, "labs": list(entries), "complete": complete})


def changes(revision, *entries):
    return report(revision, *entries, complete=False)


def token():
    return "t"


async def is_alive(cache, *arguments, **options):
    state = await cache.state(*arguments, **options)
    return state and state.alive


class Clock:
    """The time of the cache, which is normally the event loop's. A test moves it; on its own it only tells earlier from
    later, so that a busy machine makes no list old."""

    def __init__(self):
        self.ahead = 0.0

    def now(self):
        self.ahead += 1e-6
        return self.ahead


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(StatusCache, "_now", lambda self: clock.now())
    return clock


@pytest.fixture
async def cache(service, client):
    return StatusCache.shared(client, "t")


async def test_all_polls_of_an_interval_send_one_request(service, cache, clock):
    labs = [Lab(f"user{n}") for n in range(10_000)]
    service.on(LIST, report("r1", *(entry(lab, "running") for lab in labs)))
    service.on("GET /lab-status?since=r1", changes("r1"))
    assert await asyncio.gather(*(is_alive(cache, lab, token) for lab in labs)) == [True] * 10_000
    assert await is_alive(cache, labs[0], token) is True
    assert service.asked() == [LIST]
    clock.ahead += 6
    assert await asyncio.gather(*(is_alive(cache, lab, token) for lab in labs)) == [True] * 10_000
    assert service.asked() == [LIST, "GET /lab-status?since=r1"]


async def test_changes_are_merged_into_the_list(service, cache, clock):
    service.on(LIST, report("r 1&", entry(ADA, "running"), entry(BOB, "running"), entry(GPU, "starting")))
    service.on("GET /lab-status?since=r%201%26", changes("r2", entry(BOB, None), entry(GPU, "running")))
    service.on("GET /lab-status?since=r2", report("s1", entry(BOB, "running")))
    service.on("GET /labs/bob", GONE)
    assert [await is_alive(cache, lab, token) for lab in (ADA, BOB, GPU)] == [True] * 3
    clock.ahead += 6
    assert [await is_alive(cache, lab, token) for lab in (ADA, BOB, GPU)] == [True, False, True]
    clock.ahead += 6  # the service restarted: it sends the whole list, which contains only bob
    assert [await is_alive(cache, lab, token) for lab in (BOB, ADA, GPU)] == [True, False, False]
    assert [path for path in service.asked() if "lab-status" in path][-1] == "GET /lab-status?since=r2"


@pytest.mark.parametrize(
    "listed",
    [
        [],
        [entry(ADA, "failed")],
        [entry(ADA, "hibernating")],
        [entry(ADA, "terminating", pod="missing")],
        [entry(Lab("Ada"), "running")],
    ],
    ids=["missing", "failed", "unknown status", "without pod", "named otherwise"],
)
@pytest.mark.parametrize(
    ("now", "alive"),
    [(lab("running"), True), (lab("failed"), False), (GONE, False), (lab("hibernating"), None), (page(404), None)],
    ids=["running", "failed", "gone", "unknown status", "404 of a proxy"],
)
async def test_a_lab_missing_from_the_list_is_read_before_it_counts_as_stopped(service, cache, listed, now, alive):
    service.on(LIST, report("r1", *listed))
    service.on(ADA_NOW, now)
    assert await is_alive(cache, ADA, token) is alive
    assert service.asked() == [LIST, ADA_NOW]


@pytest.mark.parametrize("status", ["starting", "running", "terminating"])
async def test_a_listed_lab_is_alive(service, cache, status):
    service.on(LIST, report("r1", entry(ADA, status)))
    assert await is_alive(cache, ADA, token) is True
    assert service.asked() == [LIST]


async def test_a_list_from_before_an_operation_is_not_used(service, cache, clock):
    service.on(LIST, report("r1", entry(ADA, "running")))
    service.on("GET /lab-status?since=r1", changes("r2", entry(ADA, None)))
    service.on(ADA_NOW, GONE)
    assert await is_alive(cache, ADA, token) is True
    assert await is_alive(cache, ADA, token, since=clock.now()) is False
    assert service.asked() == [LIST, "GET /lab-status?since=r1", ADA_NOW]


async def test_a_list_that_was_requested_before_an_operation_is_not_used(service, cache, clock):
    hold = asyncio.Event()
    stale = '{"revision": "r1", "complete": true, "labs": [{"username": "ada", "server": "", "status": "running"}]}'
    service.on(LIST, Stream(stale, before=hold))
    service.on("GET /lab-status?since=r1", changes("r2", entry(ADA, None)))
    early = asyncio.create_task(is_alive(cache, ADA, token))
    await service.has_been_asked(LIST)
    late = asyncio.create_task(is_alive(cache, ADA, token, since=clock.now()))
    hold.set()
    assert (await early, await late) == (True, False)


@pytest.mark.parametrize("status", [404, 405])
async def test_a_service_without_the_list_is_asked_about_each_lab(service, cache, clock, status):
    service.on(LIST, refuse(status, "no such route", type_="unknown_route"), report("r1", entry(ADA, "running")))
    service.on(ADA_NOW, lab("running"))
    assert await is_alive(cache, ADA, token) is True
    clock.ahead += 60
    assert await is_alive(cache, ADA, token) is True
    assert service.asked() == [LIST, ADA_NOW, ADA_NOW]
    clock.ahead += 600  # the service may have been replaced in the meantime
    assert await is_alive(cache, ADA, token) is True
    assert service.asked()[3:] == [LIST]


AWAY = {
    "not ready": refuse(503, "starting", type_="not_ready"),
    "bad gateway": page(502),
    "no access": refuse(403, "no"),
    "login page": page(200),
    "changes to nothing": changes("r1", entry(ADA, "running")),
    "no revision": lambda: web.json_response({"labs": [], "complete": True}),
    "a list": lambda: web.json_response([]),
    "an entry without a server": report("r1", {"username": "ada", "status": "running"}),
    "an entry that is none": report("r1", "ada"),
    "a status that is none": report("r1", entry(ADA, 7)),
    "broken": Lost(),
    "a revision that is too long": report("r" * 100_000, entry(ADA, "running")),
    **UNUSABLE,
}


@pytest.mark.parametrize("answer", AWAY.values(), ids=AWAY)
async def test_without_a_list_the_status_is_unknown(service, cache, answer):
    service.on(LIST, answer)
    assert await is_alive(cache, ADA, token) is None
    assert ADA_NOW not in service.asked()


async def test_an_outage_costs_one_request_per_interval_and_one_log_line(service, cache, clock, caplog):
    caplog.set_level(logging.INFO)
    labs = [Lab(f"user{n}") for n in range(1000)]
    service.on(
        LIST, refuse(503, "starting"), refuse(503, "starting"), report("r1", *(entry(x, "running") for x in labs))
    )
    for _ in range(2):
        assert await asyncio.gather(*(is_alive(cache, lab, token) for lab in labs)) == [None] * 1000
        clock.ahead += 6
    assert service.asked() == [LIST, LIST]
    assert [record.levelname for record in caplog.records if record.name != "aiohttp.access"] == ["WARNING"]
    assert await asyncio.gather(*(is_alive(cache, lab, token) for lab in labs)) == [True] * 1000
    assert [record.levelname for record in caplog.records if record.name != "aiohttp.access"] == ["WARNING", "INFO"]


async def test_an_outage_of_an_older_service_is_logged_once(service, cache, caplog):
    service.on(LIST, refuse(404, "no such route", type_="unknown_route"))
    for n in range(50):
        service.on(f"GET /labs/user{n}", refuse(503, "starting"))
    assert await asyncio.gather(*(is_alive(cache, Lab(f"user{n}"), token) for n in range(50))) == [None] * 50
    assert [record.levelname for record in caplog.records if record.name != "aiohttp.access"] == ["WARNING"]


async def test_the_list_survives_an_outage(service, cache, clock):
    service.on(LIST, report("r1", entry(ADA, "running")))
    service.on("GET /lab-status?since=r1", refuse(503, "starting"), changes("r2"))
    assert await is_alive(cache, ADA, token) is True
    clock.ahead += 6
    assert await is_alive(cache, ADA, token) is None
    clock.ahead += 6
    assert await is_alive(cache, ADA, token) is True
    assert service.asked() == [LIST] + ["GET /lab-status?since=r1"] * 2


async def test_changes_without_end_do_not_fill_the_memory(service, cache, clock):
    many = [{**entry(Lab(f"user{n}"), "running"), "message": "x" * 12_000_000} for n in range(2)]
    service.on(LIST, report("r1", entry(ADA, "running")))
    service.on("GET /lab-status?since=r1", changes("r2", many[0]))
    service.on("GET /lab-status?since=r2", changes("r3", many[1]))
    for _ in range(4):
        assert await is_alive(cache, ADA, token) is True
        clock.ahead += 6
    assert service.asked() == [LIST, "GET /lab-status?since=r1", "GET /lab-status?since=r2", LIST]
    assert set(cache._labs) == {ADA}


async def test_a_poll_that_is_cancelled_leaves_the_request_to_the_others(service, cache):
    hold = asyncio.Event()
    text = '{"revision": "r1", "complete": true, "labs": [{"username": "ada", "server": "", "status": "running"}]}'
    service.on(LIST, Stream(text, before=hold))
    first, second = (asyncio.create_task(is_alive(cache, ADA, token)) for _ in range(2))
    await service.has_been_asked(LIST)
    first.cancel()
    hold.set()
    assert await second is True
    assert first.cancelled()
    assert service.asked() == [LIST]


async def test_the_list_does_not_wait_for_polls(service):
    client = ServiceClient(ClientOptions(api_url=service.url, max_status_requests=1))
    hold = asyncio.Event()
    service.on("GET /labs/bob", Stream('{"status": "running"}', wait=hold))
    service.on(LIST, report("r1", entry(ADA, "running")))
    poll = asyncio.create_task(client.polled_lab(BOB, "t"))
    await service.has_been_asked("GET /labs/bob")
    async with asyncio.timeout(5):
        assert await is_alive(StatusCache.shared(client, "t"), ADA, token) is True
    hold.set()
    await poll
    await client.close()


async def test_spawners_with_the_same_client_and_credential_share_the_cache(client, service):
    other = ServiceClient(ClientOptions(api_url=service.url + "/other"))
    assert StatusCache.shared(client, "t") is StatusCache.shared(client, "t")
    assert StatusCache.shared(client, "t") is not StatusCache.shared(client, "u")
    assert StatusCache.shared(client, "t") is not StatusCache.shared(other, "t")
    await other.close()


# How the spawner uses the cache.

SPAWN, EVENTS, DELETE = "POST /labs/ada/spawn", "GET /labs/ada/events", "DELETE /labs/ada"
STARTED, STOPPED = Stream("event: complete\ndata: Ready\n\n"), Stream("event: complete\ndata: Stopped\n\n")


async def test_the_spawners_of_a_hub_poll_with_one_request(service, make_spawner):
    users = [f"user{n}" for n in range(20)]
    service.on(LIST, report("r1", *(entry(Lab(user), "running") for user in users)))
    assert await asyncio.gather(*(make_spawner(user).poll() for user in users)) == [None] * 20
    assert service.asked() == [LIST]


async def test_an_older_list_does_not_stop_a_lab_that_just_started(service, make_spawner):
    spawner, other = make_spawner("ada"), make_spawner("bob")
    service.on(LIST, report("r1", entry(BOB, "running")))
    service.on("GET /lab-status?since=r1", changes("r2", entry(ADA, "running")))
    service.on(SPAWN, accept(303))
    service.on(EVENTS, STARTED)
    service.on(ADA_NOW, lab("running", url="http://10.0.0.7:8888"))
    assert await other.poll() is None
    await spawner.start()
    assert await spawner.poll() is None
    assert service.asked()[-1] == "GET /lab-status?since=r1"


async def test_an_older_list_does_not_revive_a_lab_that_just_stopped(service, spawner):
    service.on(LIST, report("r1", entry(ADA, "running")))
    service.on("GET /lab-status?since=r1", changes("r2", entry(ADA, None)))
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED)
    service.on(ADA_NOW, GONE)
    assert await spawner.poll() is None
    await spawner.stop()
    assert await spawner.poll() == 0


async def test_a_poll_from_before_a_stop_is_not_used_after_it(service, spawner):
    hold = asyncio.Event()
    text = '{"revision": "r1", "complete": true, "labs": [{"username": "ada", "server": "", "status": "running"}]}'
    service.on(LIST, Stream(text, before=hold))
    service.on(DELETE, GONE)
    poll = asyncio.create_task(spawner.poll())
    await service.has_been_asked(LIST)
    await spawner.stop()
    hold.set()
    assert await poll == 0


async def test_a_lab_that_is_being_started_is_not_polled(service, spawner):
    hold = asyncio.Event()
    service.on(SPAWN, accept(303))
    service.on(EVENTS, Stream(wait=hold))
    start = asyncio.create_task(spawner.start())
    await service.has_been_asked(EVENTS)
    assert await spawner.poll() is None
    assert service.asked() == [SPAWN, EVENTS]
    start.cancel()
    await asyncio.gather(start, return_exceptions=True)
    hold.set()


async def test_the_last_answer_holds_while_the_list_is_unavailable(service, spawner):
    spawner.status_interval = 0.1
    service.on(LIST, report("r1", entry(ADA, "running")))
    service.on("GET /lab-status?since=r1", refuse(503, "starting"))
    assert await spawner.poll() is None
    spawner._touch()
    assert await spawner.poll() is None
    assert service.asked() == [LIST, "GET /lab-status?since=r1"]
