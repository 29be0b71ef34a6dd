import asyncio
import json
import os
from types import SimpleNamespace

import pytest
from aiohttp import web
from conftest import Lost, Stream, accept, lab, page, refuse
from hostile_answers import BAD_URLS, UNUSABLE

from wasmspawner.lab_error import LabError

SPAWN, EVENTS, LAB, DELETE = "POST /labs/ada/spawn", "GET /labs/ada/events", "GET /labs/ada", "DELETE /labs/ada"
RUNNING = lab("running", url="http://10.0.0.7:8888")
STARTED = Stream("event: progress\ndata: 40\n\nevent: info\ndata: Pulling\n\nevent: complete\ndata: Ready\n\n")
STOPPED = Stream("event: complete\ndata: Stopped\n\n")
GONE = refuse(404, "no lab")


async def shown(spawner):
    """The progress events of a spawner, as percentages and lines."""
    return [(event["progress"], event["message"].splitlines()) async for event in spawner.progress()]


async def test_start(service, spawner):
    service.on(SPAWN, accept(303))
    service.on(EVENTS, STARTED)
    service.on(LAB, RUNNING)
    spawner.user_options = {"size": "large", "debug": True}
    spawner.environment = {"DASK": 1, "NOTHING": lambda s: None}
    assert await spawner.start() == "http://10.0.0.7:8888"
    body = json.loads(service.requests[0].body)
    assert body["options"] == {"size": "large", "debug": True}
    assert body["env"]["JUPYTERHUB_USER"] == "ada"
    assert body["env"]["JUPYTERHUB_SERVICE_URL"].startswith("http://0.0.0.0:8888")
    assert body["env"]["DASK"] == "1"
    assert "NOTHING" not in body["env"]
    assert await shown(spawner) == [(100, ["Pulling", "Ready"])]
    assert await spawner.poll() is None


@pytest.mark.parametrize(
    ("auth_state", "form", "spawn"),
    [
        (None, "hub-token", "server-token"),
        ({}, "hub-token", "server-token"),
        ({"token": "gt-ada"}, "gt-ada", "gt-ada"),
    ],
)
async def test_a_lab_is_started_with_a_token_of_its_user_and_never_with_the_hub_s(
    service, spawner, auth_state, form, spawn
):
    spawner.auth_state["value"] = auth_state
    service.on("GET /spawn-form/ada", lab("a form"))
    service.on(SPAWN, accept(303))
    service.on(EVENTS, STARTED)
    service.on(LAB, RUNNING)
    await spawner.get_options_form()
    await spawner.start()
    tokens = [request.headers["Authorization"].removeprefix("Bearer ") for request in service.requests]
    assert tokens == [form, spawn, "hub-token", "hub-token"]


async def test_named_servers_have_their_own_resource(service, spawner):
    spawner.orm_spawner = type("Orm", (), {"name": "gpu", "server": None})()
    await spawner.poll()
    assert service.asked() == ["GET /lab-status", "GET /labs/ada/servers/gpu"]


async def test_the_error_of_a_failed_start_says_why(service, spawner):
    service.on(SPAWN, accept(303))
    service.on(EVENTS, Stream("event: error\ndata: No such image\n\nevent: failed\ndata: Failed\n\n"))
    with pytest.raises(LabError) as raised:
        await spawner.start()
    assert raised.value.jupyterhub_message == "No such image"
    service.on(LAB, lab("failed"))
    assert await spawner.poll() == 1


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (refuse(403, "You may not start labs."), 403, "You may not start labs."),
        (refuse(422, "unknown size", "body", "options", "size"), 422, "size: unknown size"),
        (refuse(429, "Too many labs are starting.", **{"Retry-After": "5"}), 429, "Too many labs are starting."),
    ],
)
async def test_the_error_of_a_refused_start_says_why(service, spawner, answer, status, message):
    service.on(SPAWN, answer)
    with pytest.raises(LabError) as raised:
        await spawner.start()
    assert (raised.value.status_code, raised.value.jupyterhub_message) == (status, message)
    assert raised.value.headers == ({"Retry-After": "5"} if status == 429 else {})


async def test_an_existing_lab_is_stopped_before_a_start(service, spawner):
    service.on(SPAWN, refuse(409, "a lab exists", type_="lab_exists"), accept(303))
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED, STARTED)
    service.on(LAB, GONE, RUNNING)
    assert await spawner.start() == "http://10.0.0.7:8888"
    assert service.asked() == [SPAWN, DELETE, EVENTS, LAB, SPAWN, EVENTS, LAB]
    assert await shown(spawner) == [(100, ["Pulling", "Ready"])]


INTERRUPTED = Stream(
    "event: progress\ndata: 40\n\nevent: info\ndata: Pulling\n\nevent: error\ndata: Restarted\n\n"
    "event: failed\ndata: Interrupted\n\n"
)
AGAIN = Stream("event: progress\ndata: 5\n\nevent: info\ndata: Namespace\n\nevent: complete\ndata: Ready\n\n")


async def test_a_spawn_that_a_restart_of_the_service_interrupted_is_repeated(service, spawner):
    spawner.user_options = {"size": "large"}
    spawner.auth_state["value"] = {"token": "gt-ada"}
    service.on(SPAWN, accept(303))
    service.on(EVENTS, INTERRUPTED, AGAIN)
    service.on(LAB, lab("failed", reason="Interrupted", pod="missing"), RUNNING)
    assert await spawner.start() == "http://10.0.0.7:8888"
    assert service.asked() == [SPAWN, EVENTS, LAB, SPAWN, EVENTS, LAB]
    first, second = (r for r in service.requests if r.method == "POST")
    assert first.body == second.body
    assert second.headers["Authorization"] == "Bearer gt-ada"
    again = "The service that starts labs was restarted. Starting your lab again."
    assert await shown(spawner) == [(100, ["Pulling", "Restarted", again, "Namespace", "Ready"])]


async def test_a_reader_of_the_progress_continues_after_an_interruption(service, spawner):
    hold = asyncio.Event()
    service.on(SPAWN, accept(303))
    service.on(EVENTS, INTERRUPTED, Stream("event: info\ndata: Namespace\n\n", wait=hold))
    service.on(LAB, lab("failed", reason="Interrupted"))
    start = asyncio.create_task(spawner.start())
    events = spawner.progress()
    read = []
    while len(read) < 4:
        read += (await anext(events))["message"].splitlines()
    assert read[0] == "Pulling"
    assert read[3] == "Namespace"
    start.cancel()
    await asyncio.gather(start, return_exceptions=True)
    hold.set()


async def test_an_interrupted_spawn_is_repeated_only_once(service, spawner):
    service.on(SPAWN, accept(303))
    service.on(EVENTS, INTERRUPTED)
    service.on(LAB, lab("failed", reason="Interrupted"))
    with pytest.raises(LabError) as raised:
        await spawner.start()
    assert raised.value.jupyterhub_message == "Restarted"
    assert service.asked().count(SPAWN) == 2


async def test_another_failure_is_not_repeated(service, spawner):
    service.on(SPAWN, accept(303))
    service.on(EVENTS, INTERRUPTED)
    service.on(LAB, lab("failed", reason="ImagePullBackOff"))
    with pytest.raises(LabError, match="Restarted"):
        await spawner.start()
    assert service.asked().count(SPAWN) == 1


@pytest.mark.parametrize("answer", [refuse(503, "starting"), page(404), refuse(401, "token?")])
async def test_the_error_of_a_failed_spawn_does_not_need_another_answer(service, spawner, answer):
    service.on(SPAWN, accept(303))
    service.on(EVENTS, INTERRUPTED)
    service.on(LAB, answer)
    with pytest.raises(LabError, match="Restarted"):
        await spawner.start()


async def test_a_record_that_a_restart_lost_counts_as_an_interruption(service, spawner):
    service.on(SPAWN, accept(303))
    service.on(EVENTS, GONE, STARTED)
    service.on(LAB, RUNNING)
    assert await spawner.start() == "http://10.0.0.7:8888"
    assert service.asked().count(SPAWN) == 2


async def test_an_interrupted_spawn_that_was_stopped_is_not_repeated(service, spawner):
    hold = asyncio.Event()
    service.on(SPAWN, accept(303))
    service.on(EVENTS, Stream(*INTERRUPTED.pieces, before=hold), STOPPED)
    service.on(DELETE, accept(202))
    service.on(LAB, GONE, lab("failed", reason="Interrupted"))
    start = asyncio.create_task(spawner.start())
    await service.has_been_asked(EVENTS)
    await spawner.stop()
    hold.set()
    with pytest.raises(LabError):
        await start
    assert service.asked().count(SPAWN) == 1


async def test_a_spawn_that_someone_else_stopped_is_an_error(service, spawner):
    service.on(SPAWN, accept(303))
    service.on(EVENTS, STOPPED)
    with pytest.raises(LabError, match="stopped before it was ready"):
        await spawner.start()


async def test_progress_can_be_read_before_start_and_while_it_runs(service, spawner):
    hold = asyncio.Event()
    service.on(SPAWN, accept(303))
    service.on(EVENTS, Stream("event: info\ndata: Pulling\n\n", wait=hold), STARTED)
    service.on(LAB, RUNNING)
    events = spawner.progress()
    first = asyncio.create_task(anext(events))
    await asyncio.sleep(0)
    start = asyncio.create_task(spawner.start())
    assert (await first)["message"] == "Pulling"
    assert await spawner.poll() is None
    start.cancel()
    assert [e async for e in events] == []
    with pytest.raises(asyncio.CancelledError):
        await start
    hold.set()


async def test_deleting_a_server_deletes_its_volumes(service, spawner):
    released = {"deleted": [{"namespace": "labs", "name": "claim-ada"}], "kept": []}
    service.on("DELETE /labs/ada/volumes", lambda: web.json_response(released))
    await spawner.delete_forever()
    assert service.asked() == ["DELETE /labs/ada/volumes"]
    service.on("DELETE /labs/ada/volumes", refuse(409, "the lab still exists"))
    with pytest.raises(LabError, match="still exists"):
        await spawner.delete_forever()


async def test_volumes_in_use_are_deleted_once_the_lab_is_gone(service, spawner):
    in_use = refuse(409, "the lab still exists", type_="volumes_in_use")
    service.on("DELETE /labs/ada/volumes", in_use, lambda: web.json_response({"deleted": [], "kept": []}))
    await spawner.delete_forever()
    assert service.asked() == ["DELETE /labs/ada/volumes"] * 2
    spawner.stop_timeout = 1
    service.on("DELETE /labs/ada/volumes", in_use)
    with pytest.raises(LabError, match="still exists"):
        await spawner.delete_forever()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (lab("starting"), None),
        (lab("running"), None),
        (lab("terminating"), None),
        (lab("terminating", pod="present"), None),
        (lab("terminating", pod="missing"), 0),
        (lab("failed"), 1),
        (lab("failed", exit_code=137), 137),
        (lab("failed", exit_code=0), 1),
        (lab("failed", exit_code="9"), 1),
        (GONE, 0),
    ],
)
async def test_poll(service, spawner, answer, status):
    service.on(LAB, answer)
    assert await spawner.poll() == status


UNKNOWN = {
    "not ready": refuse(503, "starting"),
    "no access": refuse(401, "token?"),
    "server error": refuse(500, "oops"),
    "404 of a proxy": page(404),
    "404 of another route": refuse(404, "no such route", type_="unknown_route"),
    "403 of a proxy": page(403),
    "410 that is not from the service": page(410),
    "login page": page(200),
    "redirect": page(302),
    "status of a later version": lab("hibernating"),
    "status of a later version without a pod": lab("hibernating", pod="missing"),
    "no status": lambda: web.json_response({"username": "ada"}),
    "a list": lambda: web.json_response([]),
    "nothing": lambda: web.Response(),
    "broken": Lost(),
    **UNUSABLE,
}


@pytest.mark.parametrize("answer", UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize(("known", "status"), [(RUNNING, None), (lab("failed"), 1)])
async def test_poll_keeps_its_last_answer_while_the_service_is_unavailable(service, spawner, answer, known, status):
    service.on(LAB, known, answer)
    await spawner.poll()
    assert await spawner.poll() == status


async def test_poll_of_a_restarted_hub(spawner):
    spawner.api_url = "http://127.0.0.1:9"
    assert await spawner.poll() == 0
    spawner.load_state({"user": "ada", "server": ""})
    assert await spawner.poll() is None


async def test_state(service, spawner):
    assert spawner.get_state() == {}
    spawner.orm_spawner = SimpleNamespace(name="", server=None, state=None)
    service.on(SPAWN, accept(303))
    service.on(EVENTS, STARTED)
    service.on(LAB, RUNNING)
    start = spawner.start()
    # JupyterHub commits its database here. A Hub that ends after that finds the lab that it was starting.
    assert spawner.orm_spawner.state.items() >= {"user": "ada", "server": ""}.items()
    await start
    assert spawner.get_state() == {"user": "ada", "server": ""}
    # JupyterHub does this after every stop, also after one that failed.
    spawner.clear_state()
    assert spawner.get_state() == {"user": "ada", "server": ""}, "the lab may still run"
    service.on(DELETE, accept(202))
    service.on(EVENTS, STOPPED)
    service.on(LAB, GONE)
    await spawner.stop()
    spawner.clear_state()
    assert spawner.get_state() == {}


FORM = "POST /spawn-form/ada"


async def test_the_form_begins_with_the_options_of_the_last_accepted_start(service, spawner, make_spawner):
    service.on("GET /spawn-form/ada", lab("a form"))
    await spawner.get_options_form()
    assert service.asked() == ["GET /spawn-form/ada"], "there was no start yet"
    service.on(SPAWN, accept(303), refuse(422, "unknown size", "body", "options", "size"))
    service.on(EVENTS, STARTED, STOPPED)
    service.on(LAB, RUNNING, GONE)
    service.on(DELETE, accept(202))
    service.on(FORM, lab("a form"))
    spawner.user_options = {"size": "large", "_xsrf": "x"}
    await spawner.start()
    await spawner.stop()
    spawner.clear_state()
    spawner.user_options = {"size": "gigantic"}
    with pytest.raises(LabError):
        await spawner.start()
    spawner.clear_state()
    # The Hub stores this, and reads it when it starts again.
    stored = json.loads(json.dumps(spawner.get_state()))
    restarted = make_spawner("ada")
    restarted.load_state(stored)
    for each in (spawner, restarted):
        await each.get_options_form()
        assert json.loads(service.requests[-1].body) == {"last_options": {"size": "large"}}
    assert await restarted.poll() == 0, "it has no lab"


@pytest.mark.parametrize("refused", [page(405), refuse(422, "no", "body", "last_options", "size"), page(413)])
async def test_a_service_that_does_not_take_the_last_options_gives_its_form(service, spawner, refused):
    spawner.load_state({"last_options": {"size": "large"}})
    service.on(FORM, refused)
    service.on("GET /spawn-form/ada", lambda: web.Response(text="its form"))
    assert await spawner.get_options_form() == "its form"
    assert service.asked() == [FORM, "GET /spawn-form/ada"]


async def test_a_refused_form_is_not_asked_for_twice(service, spawner):
    spawner.load_state({"last_options": {"size": "large"}})
    service.on(FORM, refuse(403, "You may not."))
    with pytest.raises(LabError) as raised:
        await spawner.get_options_form()
    assert (raised.value.status_code, service.asked()) == (403, [FORM])


async def test_a_lab_keeps_its_name_when_its_user_is_renamed(service, spawner, make_spawner):
    service.on(SPAWN, accept(303))
    service.on(EVENTS, STARTED, STOPPED)
    service.on(LAB, RUNNING, RUNNING, GONE)
    service.on(DELETE, accept(202))
    await spawner.start()
    spawner.user.name = "lovelace"
    assert await spawner.poll() is None
    restarted = make_spawner("lovelace")
    restarted.load_state(spawner.get_state())
    await restarted.stop()
    assert service.asked()[-3:] == [DELETE, EVENTS, LAB]
    restarted.clear_state()
    assert restarted._lab.path == "/labs/lovelace"


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([], None),
        ([{"name": "claim-ada--gpu"}], "its volumes (claim-ada--gpu) belong to its name"),
    ],
)
async def test_a_server_with_volumes_is_not_renamed(service, spawner, claims, message):
    service.on("GET /labs/ada/servers/gpu/volumes", lambda: web.json_response({"claims": claims}))
    if message is None:
        await spawner.rename("gpu", "ml")
    else:
        with pytest.raises(LabError) as raised:
            await spawner.rename("gpu", "ml")
        assert raised.value.status_code == 409
        assert message in raised.value.jupyterhub_message


async def test_a_server_is_not_renamed_while_its_volumes_are_unknown(service, spawner):
    service.on("GET /labs/ada/servers/gpu/volumes", refuse(503, "starting"))
    with pytest.raises(LabError) as raised:
        await spawner.rename("gpu", "ml")
    assert raised.value.status_code == 503


async def test_a_lab_whose_start_was_cut_off_is_waited_for_while_the_service_is_away(service, spawner):
    server = SimpleNamespace(url="http://:8888/user/ada/", base_url="/user/ada/", ip="", port=8888)
    spawner.load_state({"user": "ada", "server": ""})
    away = refuse(503, "starting")
    service.on("GET /lab-status", away)
    service.on(LAB, *[away] * 8, lab("starting"), RUNNING)
    service.on(EVENTS, STARTED)
    type(spawner).server = property(lambda self: server)
    try:
        assert await spawner.poll() is None
        assert await spawner.get_url() == "http://10.0.0.7:8888/user/ada/"
    finally:
        del type(spawner).server


@pytest.mark.parametrize("answer", [refuse(401, "expired"), page(401)])
async def test_a_user_whose_login_has_expired_is_told_to_log_in_again(service, spawner, answer):
    spawner.auth_state["value"] = {"token": "gt-ada"}
    service.on("GET /spawn-form/ada", answer)
    service.on(SPAWN, answer)
    for attempt in (spawner.get_options_form, spawner.start):
        with pytest.raises(LabError) as raised:
            await attempt()
        assert raised.value.status_code == 403
        assert "log in again" in raised.value.jupyterhub_message
    spawner.auth_state["value"] = None
    for attempt in (spawner.get_options_form, spawner.start):
        with pytest.raises(LabError) as raised:
            await attempt()
        assert raised.value.status_code == 500, "it is not the user's token"


async def test_the_site_s_own_function_reads_the_form(make_spawner):
    spawner = make_spawner("ada")
    assert spawner.run_options_from_form({"size": ["large"], "modules": ["a", "b"]}) == {
        "size": "large",
        "modules": ["a", "b"],
    }
    spawner.options_from_form = lambda form: {"size": form["s"][0]}
    assert spawner.run_options_from_form({"s": ["large"]}) == {"size": "large"}
    assert spawner.options_from_query({"s": ["large"]}) == {"size": "large"}


def link(**arguments):
    """JupyterHub's handler of a link that starts a lab."""
    return SimpleNamespace(request=SimpleNamespace(method="GET", query_arguments=arguments))


async def test_unknown_options_of_a_link_are_dropped(service, spawner, caplog):
    spawner.orm_spawner = SimpleNamespace(name="", server=None, state=None, user_options={})
    spawner.user_options = {"size": "large", "utm_source": "mail"}
    spawner.handler = link(size=[b"large"], utm_source=[b"mail"])
    unknown = refuse(422, "is not an option", "body", "options", "utm_source", type_="invalid_option")
    service.on(SPAWN, unknown, accept(303))
    service.on("GET /spawn-form/ada", lambda: web.Response(text='<select name="size"></select>'))
    service.on(EVENTS, STARTED)
    service.on(LAB, RUNNING)
    await spawner.start()
    bodies = [json.loads(request.body)["options"] for request in service.requests if request.method == "POST"]
    assert bodies == [{"size": "large", "utm_source": "mail"}, {"size": "large"}]
    assert spawner.orm_spawner.user_options == {"size": "large"}, "the next start does not have them either"
    assert "utm_source" in caplog.text


@pytest.mark.parametrize(
    ("handler", "key"),
    [(link(size=[b"gigantic"]), "size"), (link(size=[b"large"]), "other"), (None, "other")],
    ids=["a field of the form", "not in the link", "no link"],
)
async def test_other_options_are_refused(service, spawner, handler, key):
    spawner.user_options = {key: "gigantic"}
    spawner.handler = handler
    service.on(SPAWN, refuse(422, "no", "body", "options", key, type_="invalid_option"))
    service.on("GET /spawn-form/ada", lambda: web.Response(text='<select name="size"></select>'))
    with pytest.raises(LabError) as raised:
        await spawner.start()
    assert raised.value.status_code == 422
    assert service.asked().count(SPAWN) == 1


async def test_the_url_in_the_stream_needs_no_further_request(service, spawner):
    service.on(SPAWN, accept(303))
    end = "event: complete\nurl: http://10.0.0.7:8888/user/ada/\ndata: Ready\n\n"
    service.on(EVENTS, Stream(f"event: info\ndata: Pulling\n\n{end}"))
    assert await spawner.start() == "http://10.0.0.7:8888"
    assert service.asked() == [SPAWN, EVENTS]


async def test_internal_ssl_is_refused(spawner):
    with pytest.raises(LabError, match="internal_ssl does not work"):
        await spawner.create_certs()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://10.0.0.7:8888", "http://10.0.0.7:8888/user/ada/"),
        ("http://10.0.0.9:8888", "http://10.0.0.9:8888/user/ada/"),
        (None, "http://10.0.0.7:8888/user/ada/"),
    ],
)
async def test_get_url(service, spawner, url, expected):
    server = SimpleNamespace(url="http://10.0.0.7:8888/user/ada/", base_url="/user/ada/", ip="10.0.0.7")
    type(spawner).server = property(lambda self: server)
    try:
        service.on(LAB, lab("running", url=url))
        assert await spawner.get_url() == expected
    finally:
        del type(spawner).server


async def test_a_restarted_hub_takes_the_url_from_the_list_that_it_has_just_read(service, spawner):
    known = SimpleNamespace(url="http://10.0.0.7:40001/user/ada/", base_url="/user/ada/", ip="10.0.0.7", port=40001)
    spawner.load_state({"user": "ada", "server": ""})
    entry = {"username": "ada", "server": "", "status": "running", "pod": "present", "url": "http://10.0.0.7:40001"}
    report = {"revision": "r", "complete": True, "labs": [entry]}
    service.on("GET /lab-status", lambda: web.json_response(report))
    type(spawner).server = property(lambda self: known)
    try:
        assert await spawner.poll() is None
        assert await spawner.get_url() == known.url
    finally:
        del type(spawner).server
    assert service.asked() == ["GET /lab-status"]


async def test_without_a_token_the_hub_s_own_url_of_a_lab_stands(spawner, tmp_path):
    spawner.token_file = str(tmp_path / "token")
    type(spawner).server = property(lambda self: SimpleNamespace(url="http://10.0.0.7:8888/user/ada/", ip="10.0.0.7"))
    try:
        assert await spawner.get_url() == "http://10.0.0.7:8888/user/ada/"
    finally:
        del type(spawner).server


async def test_a_lab_that_goes_on_in_another_pod_is_found_there(service, spawner, monkeypatch):
    server = SimpleNamespace(ip="10.0.0.7", port=40001)
    commits = []
    session = SimpleNamespace(commit=lambda: commits.append(server.ip))
    monkeypatch.setattr("wasmspawner.spawner.inspect", lambda orm_spawner: SimpleNamespace(session=session))
    type(spawner).server = property(lambda self: server)
    try:
        for url, expected in [
            ("http://10.0.0.7:40001", ("10.0.0.7", 40001)),
            ("http://10.0.0.9:40001", ("10.0.0.9", 40001)),
            (None, ("10.0.0.9", 40001)),
        ]:
            entry = {"username": "ada", "server": "", "status": "running", "pod": "present", "url": url}
            report = {"revision": "", "complete": True, "labs": [entry]}
            service.on("GET /lab-status", lambda report=report: web.json_response(report))
            spawner._touch()
            assert await spawner.poll() is None
            assert (server.ip, server.port) == expected
        assert commits == ["10.0.0.9"]
    finally:
        del type(spawner).server


@pytest.mark.parametrize("url", BAD_URLS)
async def test_a_url_that_is_none_keeps_neither_the_hub_from_starting_nor_polls_from_ending(service, spawner, url):
    known = SimpleNamespace(url="http://10.0.0.7:40001/user/ada/", base_url="/user/ada/", ip="10.0.0.7", port=40001)
    type(spawner).server = property(lambda self: known)
    entry = {"username": "ada", "server": "", "status": "running", "pod": "present", "url": url}
    report = {"revision": "", "complete": True, "labs": [entry]}
    try:
        service.on(LAB, lab("running", url=url))
        service.on("GET /lab-status", lambda: web.json_response(report))
        spawner._last_status = None
        assert await spawner.poll() is None
        assert await spawner.get_url() == known.url
        assert (known.ip, known.port) == ("10.0.0.7", 40001)
    finally:
        del type(spawner).server


@pytest.mark.parametrize("url", BAD_URLS)
async def test_a_start_whose_lab_has_no_possible_url_fails(service, spawner, url):
    service.on(SPAWN, accept(303))
    service.on(EVENTS, STARTED)
    service.on(LAB, lab("running", url=url))
    with pytest.raises(LabError) as raised:
        await spawner.start()
    assert raised.value.status_code == 503


async def test_the_error_of_a_refused_form_reaches_the_user(service, spawner):
    service.on("GET /spawn-form/ada", refuse(403, "Not for guests."))
    with pytest.raises(LabError) as raised:
        await spawner.get_options_form()
    assert (raised.value.status_code, raised.value.jupyterhub_message) == (403, "Not for guests.")


async def test_the_token_file_is_read_again(service, spawner, tmp_path):
    file = tmp_path / "token"
    spawner.token_file = str(file)
    assert await spawner.poll() == 0  # without the file nothing is known, and no error is raised
    for token in ("first", "second"):
        file.write_text(token + "\n")
        await spawner.stop()
        os.utime(file, ns=(1, 1 if token == "first" else 2))
    assert [r.headers["Authorization"] for r in service.requests] == ["Bearer first", "Bearer second"]
