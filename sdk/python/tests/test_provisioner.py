import asyncio
import json
import os
import signal
from types import SimpleNamespace

import pytest
from aiohttp import web
from conftest import KERNEL_COMMAND
from fake_kernels import PORTS, problem
from jupyter_client.manager import KernelManager
from jupyter_core.utils import ensure_event_loop

from wasmspawner import outage_log
from wasmspawner.provisioner import WasmSpawnerProvisioner


async def test_a_kernel_is_started_by_the_service(fake, manager, tmp_path):
    km = manager({"policy_options": {"size": "small"}, "image": "registry/kernel:1"})
    await km.start_kernel(cwd=str(tmp_path), extra_arguments=["--debug"])
    (request,) = (r for r in fake.requests if r.method == "POST")
    assert request.path == f"/labs/ada/kernels/{km.kernel_id}"
    assert request.headers["Authorization"] == "Bearer t0"
    assert request.body == {
        "kernel_name": "test",
        "command": [*KERNEL_COMMAND, "--debug"],
        "env": {},
        "options": {"size": "small", "image": "registry/kernel:1"},
        "working_dir": str(tmp_path),
        "connection": {
            "key": km.session.key.decode(),
            "signature_scheme": "hmac-sha256",
            "kernel_name": "test",
        },
    }
    assert await km.is_alive()
    assert (km.ip, km.shell_port) == ("127.0.0.1", PORTS["shell_port"])
    assert json.loads((tmp_path / "connection.json").read_text())["hb_port"] == PORTS["hb_port"]
    await km.shutdown_kernel(now=True)
    assert fake.asked("DELETE") == [f"DELETE {request.path}"]
    await km.shutdown_kernel(now=True)
    assert not await km.is_alive()


async def test_the_synchronous_manager_works_too(fake, manager):
    km = manager(manager_class=KernelManager)

    def use():
        km.start_kernel()
        assert km.is_alive()
        km.restart_kernel(now=True)
        assert km.is_alive()
        km.shutdown_kernel(now=True)
        assert not km.is_alive()
        ensure_event_loop().close()  # which Jupyter has made for this thread

    await asyncio.to_thread(use)
    path = f"/labs/ada/kernels/{km.kernel_id}"
    assert [line for line in fake.asked() if "signal" not in line] == [
        f"POST {path}",
        f"POST {path}/restart",
        f"DELETE {path}",
    ]


async def test_a_named_server_has_kernels_of_its_own(fake, manager, lab_env):
    lab_env.setenv("JUPYTERHUB_SERVER_NAME", "gpu")
    km = manager()
    await km.start_kernel()
    assert fake.asked() == [f"POST /labs/ada/servers/gpu/kernels/{km.kernel_id}"]


async def test_the_kernel_gets_its_own_variables_and_not_those_of_the_server(fake, manager, lab_env):
    lab_env.setenv("SECRET", "s")
    lab_env.setenv("DATASET_REGION", "eu")
    lab_env.setenv("DATASET", "no")
    lab_env.setenv("TEAM", "astro")
    km = manager({"pass_env": ["DATASET_*", "TEAM"]}, env={"GREETING": "hello ${SECRET}", "TEAM": "bio"})
    await km.start_kernel(env={**os.environ, "JPY_SESSION_NAME": "/a.ipynb"})
    (request,) = (r for r in fake.requests if r.method == "POST")
    assert request.body["env"] == {
        "GREETING": "hello s",
        "TEAM": "bio",
        "DATASET_REGION": "eu",
        "JPY_SESSION_NAME": "/a.ipynb",
    }


async def test_words_of_the_command_are_substituted_except_the_connection_file(fake, manager):
    km = manager(argv=["{resource_dir}/run", "{connection_file}", "{other}"])
    await km.start_kernel()
    command = next(r.body["command"] for r in fake.requests if r.method == "POST")
    assert command == [f"{km.kernel_spec.resource_dir}/run", "{connection_file}", "{other}"]


async def test_the_token_file_is_read_for_each_request(fake, manager, lab_env, tmp_path):
    path = tmp_path / "token"
    path.write_text("t1\n")
    lab_env.setenv("WASMSPAWNER_TOKEN_FILE", str(path))
    km = manager()
    await km.start_kernel()
    path.write_text("t2\n")
    await km.is_alive()
    assert [fake.requests[0].headers["Authorization"], fake.requests[-1].headers["Authorization"]] == [
        "Bearer t1",
        "Bearer t2",
    ]


@pytest.mark.parametrize(
    ("status", "error"), [(403, PermissionError), (401, PermissionError), (404, RuntimeError), (422, RuntimeError)]
)
async def test_a_refusal_is_an_error_with_the_words_of_the_service(fake, manager, status, error):
    fake.answers["POST"] = [lambda _: problem(status, "GPU kernels need the group gpu")]
    with pytest.raises(error, match="GPU kernels need the group gpu"):
        await manager().start_kernel()
    assert len(fake.asked()) == 1  # nothing was made, so nothing is deleted


async def test_an_ingress_that_refuses_the_token_leaves_the_user_with_a_remedy(fake, manager):
    fake.answers["POST"] = [lambda _: web.Response(status=401, text="<h1>401 Authorization Required</h1>")]
    with pytest.raises(PermissionError, match=r"does not accept the token .* may have expired: .* start it again"):
        await manager().start_kernel()


async def test_a_busy_service_is_asked_again(fake, manager):
    busy = {"Retry-After": "0"}
    fake.answers["POST"] = [lambda _: problem(429, "quota", **busy), lambda _: problem(503, "starting", **busy)]
    km = manager()
    await km.start_kernel()
    assert len(fake.asked("POST")) == 3


async def test_a_kernel_whose_answer_was_lost_is_found(fake, manager):
    def lose(request):
        fake.create(request.path.rpartition("/")[2])
        request.transport.abort()
        return web.Response()

    fake.answers["POST"] = [lose]
    km = manager()
    await km.start_kernel()
    assert await km.is_alive()


async def test_a_kernel_of_the_same_id_that_another_client_made_is_left_alone(fake, manager):
    fake.create("k1")
    with pytest.raises(RuntimeError, match="there is a kernel of this id"):
        await manager().start_kernel(kernel_id="k1")
    assert fake.asked("DELETE") == []


async def test_a_kernel_that_is_still_being_deleted_is_waited_for(fake, manager):
    fake.create("k1")["status"] = "terminating"
    km = manager()
    await km.start_kernel(kernel_id="k1")
    assert fake.only()["status"] == "running"


async def test_a_kernel_that_fails_is_an_error_and_is_deleted(fake, manager):
    fake.held = {"status": "failed", "reason": "ImagePullBackOff", "message": "no such image", "connection": None}
    km = manager()
    with pytest.raises(RuntimeError, match=r"no such image \(ImagePullBackOff\)"):
        await km.start_kernel()
    assert len(fake.asked("DELETE")) == 1
    assert not km.has_kernel


async def test_a_program_that_ends_at_once_is_an_error(fake, manager):
    fake.held = {"process": {"number": 1, "state": "ended", "exit_code": 127}}
    with pytest.raises(RuntimeError, match="exit code 127"):
        await manager().start_kernel()
    assert len(fake.asked("DELETE")) == 1


async def test_a_kernel_that_does_not_start_in_time_is_an_error_with_its_stage(fake, manager):
    fake.held = {"status": "starting", "stage": "pulling", "message": "pulling kernel:1", "connection": None}
    with pytest.raises(RuntimeError, match=r"within 0\.5 seconds: stage 'pulling': pulling kernel:1"):
        await manager({"timeout": 0.5}).start_kernel()
    assert len(fake.asked("DELETE")) == 1


async def test_a_cancelled_start_deletes_the_kernel(fake, manager):
    fake.held = {"status": "starting", "connection": None}
    start = asyncio.ensure_future(manager().start_kernel())
    await fake.has_been_asked("GET")
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert len(fake.asked("DELETE")) == 1


@pytest.mark.parametrize("now", [True, False])
async def test_a_restart_keeps_pod_ports_and_key(fake, manager, now):
    km = manager()
    await km.start_kernel()
    key, path = km.session.key, f"/labs/ada/kernels/{km.kernel_id}"
    await km.restart_kernel(now=now, newports=True)
    assert fake.asked()[-1] == f"POST {path}/restart"
    assert fake.asked("DELETE") == []
    assert (km.shell_port, km.session.key) == (PORTS["shell_port"], key)
    assert fake.only()["process"]["number"] == 2
    assert await km.is_alive()


async def test_a_restart_waits_for_the_new_process(fake, manager):
    km = manager()
    await km.start_kernel()
    await km.shutdown_kernel(now=True, restart=True)
    process = fake.only()["process"]
    assert process["state"] == "ended"

    def command(_):
        process.update(number=2, state="starting")
        return web.json_response(fake.only(), status=202)

    fake.answers["POST"] = [command]
    fake.answers["GET"] = [lambda _: None, lambda _: None, lambda _: process.update(state="running")]
    await km.start_kernel()
    assert process == {"number": 2, "state": "running", "exit_code": -9}
    assert fake.answers["GET"] == []


async def test_a_restart_that_a_restart_of_the_service_has_lost_is_asked_for_again(fake, manager):
    km = manager()
    await km.start_kernel()
    await km.shutdown_kernel(now=True, restart=True)
    process = fake.only()["process"]
    starting = dict(fake.only(), process={"number": 2, "state": "starting", "exit_code": None})
    fake.answers["POST"] = [lambda _: web.json_response(starting, status=202)]
    # The launcher has not got the command, and says what it did before.
    assert process == {"number": 1, "state": "ended", "exit_code": -9}
    await km.start_kernel()
    path = f"/labs/ada/kernels/{km.kernel_id}"
    assert fake.asked().count(f"POST {path}/restart") == 2
    assert fake.only()["process"]["number"] == 2


async def test_a_kernel_that_could_not_be_deleted_after_its_failed_restart_is_found_again(fake, manager):
    km = manager()
    await km.start_kernel()
    await km.shutdown_kernel(now=True, restart=True)
    fake.answers["POST"] = [lambda _: web.json_response({"detail": []}, status=500)]
    fake.answers["DELETE"] = [lambda _: web.json_response({"detail": []}, status=500) for _ in range(20)]
    with pytest.raises(RuntimeError):
        await km.start_kernel()
    fake.answers.clear()
    await km.start_kernel()
    assert await km.is_alive()


async def test_where_a_pod_cannot_restart_its_kernel_another_pod_is_made(fake, manager):
    km = manager()
    await km.start_kernel()
    key, path = km.session.key, f"/labs/ada/kernels/{km.kernel_id}"
    fake.has_launcher = False
    await km.restart_kernel(now=True)
    assert fake.asked()[-3:] == [f"POST {path}/restart", f"DELETE {path}", f"POST {path}"]
    assert next(r.body["connection"]["key"] for r in reversed(fake.requests) if r.body).encode() == key
    assert await km.is_alive()


async def test_a_pod_whose_process_is_unknown_counts_as_killed(fake, manager):
    km = manager()
    await km.start_kernel()
    # The service was restarted, and the launcher has not reported yet.
    fake.has_launcher = False
    fake.kernels[km.kernel_id]["process"] = None
    assert await km.is_alive()
    async with asyncio.timeout(4):  # Jupyter would wait for 5 seconds
        await km.shutdown_kernel(now=True)
    assert len(fake.asked("DELETE")) == 1


async def test_a_kernel_that_is_gone_is_made_anew_by_a_restart(fake, manager):
    km = manager()
    await km.start_kernel()
    fake.kernels.clear()
    assert not await km.is_alive()
    await km.restart_kernel(now=True)
    assert await km.is_alive()


async def test_a_restarted_program_that_ends_at_once_is_dead_and_not_an_error(fake, manager):
    km = manager()
    await km.start_kernel()
    fake.kernels.clear()
    fake.held = {"process": {"number": 1, "state": "ended", "exit_code": 1}}
    await km.restart_kernel(now=True)
    assert not await km.is_alive()


async def test_signals_reach_the_kernel_and_end_no_pod(fake, manager):
    km = manager()
    await km.start_kernel()
    await km.interrupt_kernel()
    await km.signal_kernel(0)
    await km.provisioner.kill()
    assert fake.signals == [signal.SIGINT, signal.SIGKILL]
    assert await km.provisioner.poll() == await km.provisioner.wait() == -9
    await km.interrupt_kernel()  # of a process that has ended
    await km.provisioner.terminate()
    assert fake.asked("DELETE") == []
    await km.cleanup_resources()
    assert fake.asked("DELETE") == [f"DELETE /labs/ada/kernels/{km.kernel_id}"]


@pytest.mark.parametrize(
    ("change", "exit_code"),
    [
        ({"process": {"number": 1, "state": "ended", "exit_code": 3}}, 3),
        ({"process": {"number": 1, "state": "ended", "exit_code": 0}}, 0),
        ({"process": {"number": 1, "state": "ended", "exit_code": None}}, 1),
        ({"status": "failed"}, 1),
        ({"status": "starting"}, None),
        ({"process": None}, None),
    ],
)
async def test_poll_says_whether_the_kernel_is_alive(fake, manager, change, exit_code):
    km = manager()
    await km.start_kernel()
    fake.only().update(change)
    assert await km.provisioner.poll() == exit_code


async def test_a_kernel_is_alive_while_the_service_cannot_say(fake, manager, lab_env):
    km = manager()
    await km.start_kernel()
    fake.answers["GET"] = [
        lambda _: problem(503, "starting"),
        lambda _: web.Response(status=404, text="an ingress"),
        lambda _: problem(401, "the token is unknown"),
    ]
    lines = []
    lab_env.setattr(outage_log, "get_logger", lambda: SimpleNamespace(warning=lambda *a: lines.append(a), info=print))
    assert [await km.is_alive() for _ in range(4)] == [True] * 4
    assert [subject for _, subject, _ in lines] == [f"kernel {km.kernel_id}"]


async def test_another_process_takes_over_a_kernel(fake, manager, lab_env):
    km = manager()
    await km.start_kernel()
    info = json.loads(json.dumps(await km.provisioner.get_provisioner_info()))
    assert "t0" not in json.dumps(info)
    lab_env.delenv("WASMSPAWNER_URL")
    other = WasmSpawnerProvisioner(kernel_id="", kernel_spec=km.kernel_spec, parent=manager())
    await other.load_provisioner_info(info)
    assert other.has_process
    assert other.connection_info == km.provisioner.connection_info
    assert other.connection_info["key"] == km.session.key
    assert await other.poll() is None
    await other.kill()
    assert await km.provisioner.poll() == -9
    await other.cleanup()
    assert len(fake.asked("DELETE")) == 1


async def test_curve_keys_are_given_to_the_kernel_and_survive_a_restart(fake, manager):
    km = manager(metadata={"supported_encryption": ["curve"]}, transport_encryption="auto")
    await km.start_kernel()
    sent = next(r.body["connection"] for r in fake.requests if r.method == "POST")
    assert sent["curve_publickey"] == km.curve_publickey.decode()
    assert sent["curve_secretkey"] == km.curve_secretkey.decode()
    assert json.dumps(await km.provisioner.get_provisioner_info())
    fake.kernels.clear()
    await km.restart_kernel(now=True)
    assert [r.body["connection"] for r in fake.requests if r.body and "command" in r.body] == [sent, sent]


async def test_a_failed_deletion_does_not_stop_the_shutdown(fake, manager):
    km = manager()
    await km.start_kernel()
    fake.answers["DELETE"] = [lambda _: problem(500, "broken")]
    await km.shutdown_kernel(now=True)
    assert not km.has_kernel
