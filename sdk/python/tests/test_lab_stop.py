import asyncio

import pytest
from conftest import Lost, Stream, accept, lab, page, refuse

from wasmspawner.lab_error import LabError

EVENTS, LAB, DELETE = "GET /labs/ada/events", "GET /labs/ada", "DELETE /labs/ada"
STOPPED = Stream("event: complete\ndata: Stopped\n\n")
GONE = refuse(404, "no lab")


async def test_a_stop_is_followed_and_verified(service, spawner):
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED)
    service.on(LAB, GONE)
    await spawner.stop()
    assert service.asked() == [DELETE, EVENTS, LAB]
    assert [e["message"] async for e in spawner.progress()] == ["Stopped"]


@pytest.mark.parametrize(
    "left", [GONE, lab("failed", pod="missing"), lab("terminating", pod="missing")], ids=["gone", "failed", "going"]
)
async def test_a_lab_without_a_pod_counts_as_stopped(service, spawner, left):
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED)
    service.on(LAB, left)
    await spawner.stop()
    assert service.asked() == [DELETE, EVENTS, LAB]


async def test_an_unknown_lab_counts_as_stopped(service, spawner):
    service.on(DELETE, GONE)
    await spawner.stop()
    assert service.asked() == [DELETE]


async def test_a_record_that_is_gone_before_its_stream_is_opened_is_stopped(service, spawner):
    service.on(DELETE, accept(202))
    service.on(EVENTS, GONE)
    service.on(LAB, GONE)
    await spawner.stop()
    assert service.asked() == [DELETE, EVENTS, LAB]


@pytest.mark.parametrize("status", ["running", "starting", "hibernating"])
async def test_a_lab_that_is_still_there_is_stopped_again(service, spawner, status):
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED)
    service.on(LAB, lab(status, pod="present"), GONE)
    await spawner.stop()
    assert service.asked() == [DELETE, EVENTS, LAB] * 2


async def test_a_stop_under_way_is_followed_again(service, spawner):
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED)
    service.on(LAB, lab("terminating", pod="present"), GONE)
    await spawner.stop()
    assert service.asked() == [DELETE, EVENTS, LAB, EVENTS, LAB]
    assert [e["message"] async for e in spawner.progress()] == ["Stopped"]


async def test_a_failed_stop_is_tried_again(service, spawner):
    service.on(DELETE, accept(202))
    service.on(EVENTS, Stream("event: failed\ndata: The namespace would not go\n\n"), STOPPED)
    service.on(LAB, lab("failed", pod="present"), GONE)
    await spawner.stop()
    assert service.asked() == [DELETE, EVENTS, LAB] * 2


async def test_a_stop_that_fails_again_and_again_says_why(service, spawner):
    spawner.stop_timeout = 1
    service.on(DELETE, accept(202))
    service.on(EVENTS, Stream("event: failed\ndata: The namespace would not go\n\n"))
    service.on(LAB, lab("failed", pod="present"))
    with pytest.raises(LabError) as raised:
        await spawner.stop()
    assert raised.value.status_code == 504
    assert raised.value.jupyterhub_message == "The lab did not stop within 1 seconds. The namespace would not go"


async def test_the_last_attempt_to_stop_says_why(service, spawner):
    spawner.stop_timeout = 1
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED, Stream("event: failed\ndata: The namespace would not go\n\n"))
    service.on(LAB, lab("running", pod="present"))
    with pytest.raises(LabError, match="would not go"):
        await spawner.stop()
    assert [e["message"] async for e in spawner.progress()] == ["Stopped"]


AWAY = {
    "lost": Lost(),
    "not ready": refuse(503, "starting"),
    "bad gateway": page(502),
    "gateway timeout": page(504),
    "404 of a proxy": page(404),
    "server error": refuse(500, "oops", type_="internal_error"),
}


@pytest.mark.parametrize("answer", AWAY.values(), ids=AWAY)
async def test_a_stop_waits_for_an_unavailable_service(service, spawner, answer):
    spawner.retry_for = 0
    service.on(DELETE, *[answer] * 4, accept(202))
    service.on(EVENTS, STOPPED)
    service.on(LAB, *[answer] * 4, GONE)
    await spawner.stop()
    assert service.asked()[-1] == LAB
    assert service.asked().count(DELETE) >= 3


async def test_after_a_lost_answer_the_lab_is_read(service, spawner):
    service.on(DELETE, page(504))
    service.on(LAB, GONE)
    await spawner.stop()
    assert service.asked() == [DELETE, LAB]


async def test_without_a_stream_the_lab_is_read(service, spawner):
    service.on(DELETE, accept(202))
    service.on(EVENTS, page(502))
    service.on(LAB, GONE)
    spawner.retry_for = 0
    await spawner.stop()
    assert service.asked()[-1] == LAB


async def test_the_error_after_stop_timeout_names_the_unavailable_service(spawner):
    spawner.api_url = "http://127.0.0.1:9"
    spawner.stop_timeout = 1
    begun = asyncio.get_running_loop().time()
    with pytest.raises(LabError) as raised:
        await spawner.stop()
    assert asyncio.get_running_loop().time() - begun >= 1
    assert raised.value.jupyterhub_message.startswith(
        "The lab did not stop within 1 seconds. The service that starts labs cannot be reached"
    )
    assert "127.0.0.1:9" in str(raised.value)


async def test_a_stop_that_is_not_allowed_ends_at_once(service, spawner):
    service.on(DELETE, refuse(403, "Not you.", type_="permission_denied"))
    with pytest.raises(LabError, match=r"Not you\."):
        await spawner.stop()
    assert service.asked() == [DELETE]


async def test_an_endless_stop_is_an_error(service, spawner):
    hold = asyncio.Event()
    spawner.stop_timeout = 1
    service.on(DELETE, accept(202))
    service.on(EVENTS, Stream(": here\n\n", wait=hold))
    with pytest.raises(LabError, match=r"within 1 seconds\. It is still shutting down\."):
        await spawner.stop()
    hold.set()
