import asyncio
import json

import pytest

from wasmspawner.progress import ProgressLog
from wasmspawner.sse import Event

MISSING = "Earlier messages are not shown."


def event(type_, data="x"):
    return Event(type_, data, "")


def shown(progress, message):
    return {"progress": progress, "message": message}


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param([event("progress", "30")], [], id="progress alone shows nothing"),
        pytest.param([event("info", "a")], [shown(0, "a")], id="info before any progress"),
        pytest.param(
            [event("progress", "30"), event("info", "a"), event("error", "b")],
            [shown(30, "a"), shown(30, "b")],
            id="info and error carry the last progress",
        ),
        pytest.param(
            [event("progress", "30"), event("complete", "Running")], [shown(100, "Running")], id="complete is 100"
        ),
        pytest.param([event("progress", "30"), event("failed", "No")], [shown(100, "No")], id="failed is 100"),
        pytest.param([event("complete", ""), event("info", "late")], [shown(100, "Operation complete")], id="the end"),
        pytest.param([event("stage", "{}"), event("novel")], [], id="unknown types"),
        pytest.param(
            [event("progress", "9000"), event("info", "a"), event("progress", "-4"), event("info", "b")],
            [shown(100, "a"), shown(100, "b")],
            id="numbers the bar cannot show",
        ),
    ],
)
async def test_each_event_is_converted_to_jupyterhub_progress(stream, events):
    log = ProgressLog()
    await log.apply(stream)
    await log.end()
    assert log.events == events


async def test_every_reader_gets_all_events():
    log = ProgressLog()

    async def read():
        return [line async for e in log.follow() for line in e["message"].splitlines()]

    early = asyncio.create_task(read())
    await asyncio.sleep(0)
    await log.apply([event("info", "a")])
    middle = asyncio.create_task(read())
    await asyncio.sleep(0)
    assert await log.apply([event("info", "b"), event("complete", "c")])
    await log.end()
    assert await asyncio.gather(early, middle, read()) == [["a", "b", "c"]] * 3


async def test_a_reader_gets_all_that_is_new_as_one_event():
    log = ProgressLog()
    await log.apply([event("progress", "10"), event("info", "a"), event("progress", "20"), event("info", "<b>")])
    reader = log.follow()
    assert await anext(reader) == {"progress": 20, "message": "a\n<b>", "html_message": "a<br>&lt;b&gt;"}
    await log.apply([event("info", "c")])
    second = asyncio.create_task(anext(reader))
    await asyncio.sleep(0.1)
    assert not second.done(), "half a second has not passed"
    await log.apply([event("info", "d"), event("complete", "Ready")])
    assert not second.done()
    await log.end()
    assert (await second)["message"] == "c\nd\nReady", "the end is not delayed"
    assert await anext(reader, "ended") == "ended"


async def test_readers_end_with_an_interrupted_operation():
    log = ProgressLog()
    reader = asyncio.create_task(anext(log.follow(), "ended"))
    await asyncio.sleep(0)
    await log.end()
    assert await reader == "ended"


async def test_a_repeated_operation_continues_the_log():
    log = ProgressLog()
    assert await log.apply([event("progress", "40"), event("error", "Broken"), event("failed", "No")])
    assert (log.failed, log.failure) == (True, "Broken")
    await log.go_on("Again")
    assert (log.failed, log.complete) == (False, False)
    await log.apply([event("progress", "5"), event("info", "Pulling"), event("complete", "Ready")])
    await log.end()
    assert log.events == [shown(40, "Broken"), shown(40, "Again"), shown(40, "Pulling"), shown(100, "Ready")]


@pytest.mark.parametrize("text", ["x", "é", "\N{PILE OF POO}", '"', "\x00"])
async def test_a_flood_of_events_is_limited_in_memory(text):
    log = ProgressLog()
    for n in range(500):
        await log.apply([event("info", f"{n}: {text * 200_000}")])
    await log.apply([event("error", f"why: {text * 200_000}"), event("failed", "No")])
    await log.end()
    assert len(json.dumps(log.events)) < 300 * 1024
    assert log.events[0]["message"] == MISSING
    assert log.events[-2]["message"].startswith("why: ")
    assert log.events[-1] == shown(100, "No")
    assert log.failure.startswith("why: ")
    assert len(log.failure) < 10_000


async def test_a_reader_whom_events_overtake_is_told_that_some_are_missing():
    log = ProgressLog()
    await log.apply([event("info", "first")])
    reader = log.follow()
    assert (await anext(reader))["message"] == "first"
    await log.apply(event("info", str(n)) for n in range(2000))
    await log.end()
    read = [line async for e in reader for line in e["message"].splitlines()]
    assert read == [MISSING] + [str(n) for n in range(1000, 2000)]


@pytest.mark.parametrize("data", ["9" * 5000, "٣" * 5000, "1e3", "-1", "NaN", ""])
async def test_a_percentage_that_is_none_is_ignored(data):
    log = ProgressLog()
    await log.apply([event("progress", data), event("info", "a")])
    assert log.events == [shown(0, "a")]
