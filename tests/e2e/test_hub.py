"""A user's way through JupyterHub to a real JupyterLab, over HTTP only."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest
import requests
from jupyterhub.spawner import Spawner
from world import ENDING_FILE, EXPIRED_USER, LATE_FILE, OTHER_PORT, SUSPENDED_USER, Visitor, eventually


def test_form_spawn_progress_lab_stop(world):
    name = "ada.lovelace@example.org"
    visitor = Visitor(world, name)
    page, fields = visitor.form()
    assert page.status_code == 200
    assert fields.choices["image"][0] == "minimal"
    assert fields.values["size"] == "small"

    pending = visitor.submit(size="medium", debug="true")
    assert "spawn-pending" in pending.url, pending.text
    events = visitor.progress()
    numbers = [event["progress"] for _, event in events]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) >= 3, f"the bar hardly moved: {events}"
    assert events[-1][0] - events[0][0] > 1, "the events came all at once"
    assert events[-1][1].get("ready") is True

    assert world.lab_status(name)["kernels"] == 0
    lab = world.lab(name)
    assert (lab["status"], lab["username"]) == ("running", name)
    assert lab["options"]["size"] == "medium"
    assert lab["options"]["debug"] is True
    assert lab["env"]["JUPYTERHUB_API_TOKEN"] == "<redacted>"

    world.hub_api("DELETE", f"/users/{name}/server")
    eventually(lambda: not world.servers(name), what="the Hub's server is gone")
    assert world.lab(name) is None
    assert world.lab_status(name) is None


def test_the_form_remembers_the_last_choices_of_each_server(world):
    visitor = Visitor(world, "maria")
    visitor.submit(size="medium", image="scipy", debug="true")
    visitor.progress()
    world.hub_api("DELETE", "/users/maria/server")
    eventually(lambda: not world.servers("maria"), what="the Hub's server is gone")
    # Neither process has anything left in its memory.
    world.stop_hub()
    world.stop_service()
    world.start_service()
    world.start_hub()
    visitor = Visitor(world, "maria")
    page, fields = visitor.form()
    chosen = {name: fields.values[name] for name in ("size", "image", "debug")}
    assert chosen == {"size": "medium", "image": "scipy", "debug": "true"}
    assert "not available any more" not in page.text
    _, fields = visitor.form(server="second")
    assert (fields.values["size"], fields.values["debug"]) == ("small", "false"), "another server has its own choices"
    _, fields = Visitor(world, "johanna").form()
    assert fields.values["size"] == "small", "and so has another user"
    # What the service refuses is not remembered.
    refused = visitor.submit(size="gigantic")
    assert "spawn-pending" not in refused.url
    _, fields = visitor.form()
    assert fields.values["size"] == "medium"


def test_a_wrong_password_or_host_is_refused(world):
    with pytest.raises(AssertionError):
        Visitor(world, "ada", password="guess")
    answer = requests.get(f"{world.url}/hub/login", headers={"Host": "rebound.example.org"}, timeout=30)
    assert (answer.status_code, "_xsrf" in answer.cookies) == (421, False)


def test_the_hub_s_token_cannot_start_a_lab(world):
    """Whoever takes over the Hub must not run code as its users."""
    token = world.settings.hub_token_file.read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    for user in ("ada", "jupyterhub"):
        answer = requests.post(
            f"{world.settings.api_url}/labs/{user}/spawn", json={}, headers=headers, timeout=30, allow_redirects=False
        )
        assert (answer.status_code, answer.json()["detail"][0]["type"]) == (403, "permission_denied")
    assert requests.get(f"{world.settings.api_url}/labs", headers=headers, timeout=30).status_code == 200


def test_the_token_of_a_server_is_valid_for_that_server_alone(world):
    """The tokens that the tests of the API take from a fake Hub, from a real one."""
    visitor = Visitor(world, "emmy")
    visitor.submit(image="other")
    assert visitor.progress()[-1][1].get("ready") is True
    headers = {"Authorization": f"Bearer {world.token_of_lab('emmy')}"}

    def status(method, lab):
        url = f"{world.settings.api_url}/labs/{lab}"
        return requests.request(method, url, headers=headers, json={}, timeout=30, allow_redirects=False).status_code

    assert status("GET", "emmy") == 200
    assert status("POST", "emmy/spawn") == 409
    assert status("GET", "emmy/servers/gpu") == 403
    assert status("POST", "emmy/servers/gpu/spawn") == 403
    assert status("POST", "ada/spawn") == 403


def test_a_program_that_is_not_jupyter_is_reached_through_the_hub(world):
    visitor = Visitor(world, "rosalind")
    visitor.submit(image="other")
    assert visitor.progress()[-1][1].get("ready") is True
    assert world.lab("rosalind")["url"].endswith(f":{OTHER_PORT}")
    page = visitor.session.get(f"{world.url}/user/rosalind/some/page", timeout=30)
    assert page.text == "not Jupyter: /user/rosalind/some/page"


def test_two_users_at_once(world):
    names = ["grace", "hedy"]
    with ThreadPoolExecutor() as pool:
        visitors = list(pool.map(lambda name: Visitor(world, name), names))
        list(pool.map(lambda visitor: visitor.submit(), visitors))
        endings = list(pool.map(lambda visitor: visitor.progress()[-1][1], visitors))
    assert [ending.get("ready") for ending in endings] == [True, True]
    urls = {world.lab(name)["url"] for name in names}
    assert len(urls) == 2
    assert all(world.lab_status(name) for name in names)
    # No user can reach the lab of another.
    answer = visitors[0].session.get(f"{world.url}/user/hedy/api/status", timeout=30)
    assert answer.status_code in (403, 404)
    assert "kernels" not in answer.text


def test_a_named_server_beside_the_default_one(world):
    name = "katherine"
    visitor = Visitor(world, name)
    visitor.submit()
    visitor.progress()
    visitor.submit("second")
    assert visitor.progress("second")[-1][1].get("ready") is True
    assert set(world.servers(name)) == {"", "second"}
    assert world.lab(name, "second")["server"] == "second"
    assert world.lab_status(name)
    assert world.lab_status(name, "second")
    world.hub_api("DELETE", f"/users/{name}/servers/second")
    eventually(lambda: world.lab(name, "second") is None, what="the named lab is gone")
    assert world.lab_status(name), "the default lab went with the named one"


def test_deleting_a_server_deletes_its_volume(world):
    name = "mary"
    visitor = Visitor(world, name)
    for server in ("", "second"):
        visitor.submit(server, image="other")
        assert visitor.progress(server)[-1][1].get("ready") is True
    both = {"claim-mary", "claim-mary--second"}
    assert world.claims(name) == both
    world.hub_api("DELETE", f"/users/{name}/servers/second")
    eventually(lambda: world.lab(name, "second") is None, what="the named lab is gone")
    assert world.claims(name) == both, "a stop touches no volume"
    world.hub_api("DELETE", f"/users/{name}/servers/second", json={"remove": True})
    eventually(lambda: world.claims(name) == {"claim-mary"}, what="the named server's claim is gone")
    world.hub_api("DELETE", f"/users/{name}")
    eventually(lambda: world.claims(name) == set(), what="the user's claims are gone")
    assert world.lab(name) is None


def test_the_user_reads_why_a_lab_failed(world):
    visitor = Visitor(world, "margaret")
    answer = visitor.submit(image="broken")
    if "spawn-pending" in answer.url:
        ending = visitor.progress()[-1][1]
        assert ending["failed"] is True
        message = ending["message"]
    else:  # the spawn failed within the second that the Hub waits
        message = answer.text
    assert "exit" in message.lower() or "crash" in message.lower(), message
    lab = world.lab("margaret")
    assert lab["status"] == "failed"
    assert lab["reason"]
    # A failed lab does not prevent the next spawn.
    visitor.submit(image="other")
    assert visitor.progress()[-1][1].get("ready") is True


def test_the_message_of_a_policy_reaches_the_user(world):
    visitor = Visitor(world, SUSPENDED_USER)
    page, _ = visitor.form()
    text = page.text if page.status_code == 403 else visitor.submit().text
    assert "Your access has ended. Ask the help desk." in text
    assert world.lab(SUSPENDED_USER) is None


@pytest.mark.parametrize(("field", "value"), [("size", "gigantic"), ("unheard", "of")])
def test_an_invalid_option_is_named_on_the_form(world, field, value):
    answer = Visitor(world, "dorothy").submit(**{field: value})
    assert answer.status_code == 422
    assert field in answer.text
    assert "spawn_form" in answer.text, "the user may try again"
    assert world.lab("dorothy") is None


def test_labs_outlive_the_hub(world):
    name = "radia"
    visitor = Visitor(world, name)
    visitor.submit()
    visitor.progress()
    before = world.lab_status(name)["started"]
    world.stop_hub()
    assert world.lab(name)["status"] == "running"
    world.start_hub()
    eventually(lambda: world.servers(name).get("", {}).get("ready"), what="the Hub knows its lab again")
    assert eventually(lambda: world.lab_status(name), what="the lab answers")["started"] == before


def test_a_lab_goes_on_when_its_user_is_renamed(world):
    name, new = "emily", "emily.b"
    visitor = Visitor(world, name)
    visitor.submit(image="other")
    assert visitor.progress()[-1][1].get("ready") is True
    before = world.lab(name)["job_id"]
    world.hub_api("PATCH", f"/users/{name}", json={"name": new})
    world.after_polls()
    assert world.servers(new)[""]["ready"] is True
    world.stop_hub()
    world.start_hub()
    eventually(lambda: world.servers(new).get("", {}).get("ready"), what="the Hub knows its lab again")
    world.after_polls()
    assert world.lab(name)["job_id"] == before
    world.hub_api("DELETE", f"/users/{new}/server")
    eventually(lambda: world.lab(name) is None, what="the lab is gone")
    assert not world.servers(new)
    visitor = Visitor(world, new)
    visitor.submit(image="other")
    assert visitor.progress()[-1][1].get("ready") is True
    assert world.lab(new)["status"] == "running"


@pytest.mark.skipif(not hasattr(Spawner, "rename"), reason="JupyterHub 6 renames servers")
def test_a_server_with_volumes_is_not_renamed(world):
    name = "sophie"
    visitor = Visitor(world, name)
    visitor.submit("second", image="other")
    assert visitor.progress("second")[-1][1].get("ready") is True
    world.hub_api("DELETE", f"/users/{name}/servers/second")
    eventually(lambda: world.lab(name, "second") is None, what="the lab is gone")
    with pytest.raises(requests.HTTPError) as refused:
        world.hub_api("PATCH", f"/users/{name}/servers/second", json={"name": "third"})
    assert refused.value.response.status_code == 409
    assert "claim-sophie--second" in refused.value.response.json()["message"]
    world.hub_api("PATCH", f"/users/{name}/servers/second", json={"display_name": "third"})


def test_a_hub_that_ends_in_mid_spawn_finds_its_lab_once_the_service_is_back(world):
    name = "annie"
    late = world.settings.state / LATE_FILE
    visitor = Visitor(world, name)
    visitor.submit(image="late")
    eventually(lambda: (world.lab(name) or {}).get("pod") == "present", what="the lab is starting")
    world.stop_hub()
    late.touch()
    eventually(lambda: world.lab(name)["status"] == "running", what="the lab is ready")
    before = world.lab(name)["job_id"]
    world.stop_service()
    log = world.hub.log
    said = log.read_text().count("the last answers stand")
    world.start_hub()
    eventually(lambda: log.read_text().count("the last answers stand") > said, what="the Hub polled in vain")
    world.start_service()
    eventually(lambda: world.servers(name).get("", {}).get("ready"), 120, "the Hub knows its lab")
    assert world.lab(name)["job_id"] == before
    page = Visitor(world, name).session.get(f"{world.url}/user/{name}/some/page", timeout=30)
    assert page.text.startswith(f"not Jupyter: /user/{name}/some/page")


def test_a_user_whose_login_has_expired_is_told_so(world):
    visitor = Visitor(world, EXPIRED_USER)
    page, _ = visitor.form()
    assert page.status_code == 403
    assert "log in again" in page.text
    with pytest.raises(requests.HTTPError) as refused:
        world.hub_api("POST", f"/users/{EXPIRED_USER}/server", json={})
    assert refused.value.response.status_code == 403, "no failure of the Hub"


def test_unknown_options_of_a_link_are_ignored(world):
    name = "florence"
    visitor = Visitor(world, name)
    visitor.session.get(f"{world.url}/hub/spawn/{name}?image=other&utm_source=mail", timeout=60)
    eventually(lambda: world.servers(name).get("", {}).get("ready"), what="the lab is ready")
    assert world.lab(name)["options"] == {"image": "other", "size": "small"} | {
        key: value for key, value in world.lab(name)["options"].items() if key not in ("image", "size")
    }
    assert "utm_source" in world.hub.log.read_text()
    answer = Visitor(world, name + "2").session.get(f"{world.url}/hub/spawn/{name}2?size=gigantic", timeout=60)
    assert answer.status_code == 422
    assert world.lab(name + "2") is None, "a wrong value of a known option is an error"


def test_the_exit_code_of_a_lab_that_ends_again_and_again_is_that_of_its_program(world):
    name = "berta"
    visitor = Visitor(world, name)
    visitor.submit(image="ending")
    assert visitor.progress()[-1][1].get("ready") is True
    (world.settings.state / ENDING_FILE).touch()
    exited = f"User {name} server stopped, with exit code: 3"
    eventually(lambda: exited in world.hub.log.read_text(), 120, "the Hub logged the exit code")


def test_settings_without_effect_are_named_in_the_hub_s_log(world):
    log = world.hub.log.read_text()
    assert "These settings have no effect with wasmspawner: c.KubeSpawner.image, c.Spawner.mem_limit" in log


def test_labs_outlive_the_service(world):
    name = "barbara"
    visitor = Visitor(world, name)
    visitor.submit()
    visitor.progress()
    before = world.lab_status(name)["started"]
    log = world.hub.log
    world.stop_service()
    # The Hub polls every second, and must not treat an unreachable service as the end of labs.
    eventually(lambda: "unknown, the last answers stand" in log.read_text(), what="the Hub polled in vain")
    assert world.lab_status(name)["started"] == before
    world.start_service()
    assert world.lab(name)["status"] == "running"
    assert world.servers(name)[""]["ready"] is True
    assert world.lab_status(name)["started"] == before
    # The service still controls the lab.
    world.hub_api("DELETE", f"/users/{name}/server")
    eventually(lambda: world.lab(name) is None, what="the lab is gone")


def test_a_lab_that_crashes_is_restarted(world):
    name = "joan"
    visitor = Visitor(world, name)
    visitor.submit()
    visitor.progress()
    before = world.lab_status(name)["started"]
    for process, _ in world.processes(name):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    eventually(lambda: (world.lab_status(name) or {}).get("started", before) != before, 60, "the lab is back")
    assert world.servers(name)[""]["ready"] is True


def test_a_lab_that_its_user_shuts_down_is_removed(world):
    name = "jean"
    visitor = Visitor(world, name)
    visitor.submit()
    visitor.progress()
    answer = requests.post(
        f"{world.url}/user/{name}/api/shutdown", headers={"Authorization": f"token {world.hub_token}"}, timeout=30
    )
    assert answer.ok, answer.text
    eventually(lambda: not world.servers(name), what="the Hub noticed")
    lab = world.lab(name)
    assert lab is None or lab["status"] == "failed"


def test_a_lab_that_the_hub_does_not_know_is_listed_as_forgotten(world):
    name = "frances"
    visitor = Visitor(world, name)
    for server in ("", "second"):
        visitor.submit(server, image="other")
        assert visitor.progress(server)[-1][1].get("ready") is True
    eventually(lambda: world.forgotten()[1] == [], what="no lab is forgotten")
    world.stop_hub()
    eventually(lambda: "cannot be reached" in world.forgotten()[2], what="the answer names the unreachable Hub")
    world.delete_from_hub_database(name, "second")
    world.start_hub()
    eventually(lambda: world.servers(name).get("", {}).get("ready"), what="the Hub knows the other server")
    eventually(lambda: world.forgotten()[1] == [(name, "second")], what="the lost server is listed, and no other")
    assert world.lab(name, "second")["status"] == "running", "it is listed, and nothing else"
    world.stop_lab(name, "second")
    eventually(lambda: world.forgotten()[1] == [], what="it is gone")


def test_an_error_about_the_hub_token_says_what_to_do(world):
    file = world.settings.service_token_file
    good = file.read_text()
    try:
        for token, expected in (
            ("unknown" * 8, "c.JupyterHub.services"),
            (world.hub_token + "limited", "scopes list:users"),
        ):
            file.write_text(token)
            refused = eventually(
                lambda text=expected: (answer := world.forgotten())[0] and text in answer[2] and answer
            )
            assert refused[1] is None
    finally:
        file.write_text(good)
    eventually(lambda: world.forgotten()[0] == 0, what="the right token works again")
