"""Kernels that run in pods of their own, in a real JupyterLab that nobody has configured for that."""

import json

import pytest
from jupyter_lab import JupyterLab
from world import Visitor, eventually

KERNEL = "own-pod"


@pytest.fixture
def lab(world, request):
    """The JupyterLab of a user of this test."""
    name = request.node.name.replace("_", "-")[:40]
    visitor = Visitor(world, name)
    visitor.submit()
    assert visitor.progress()[-1][1].get("ready") is True
    yield name, JupyterLab(world, name)
    if world.servers(name):
        world.hub_api("DELETE", f"/users/{name}/server")
        eventually(lambda: not world.servers(name), what="the server is gone")


def test_a_notebook_computes_in_a_pod_of_its_own(world, lab):
    user, jupyter = lab
    assert KERNEL in jupyter.ask("GET", "/kernelspecs").json()["kernelspecs"]
    kernel = jupyter.start_kernel(KERNEL)
    assert jupyter.run(kernel, "x = 6 * 7; print(x)") == "42\n"
    [known] = world.kernels(user)
    assert (known["id"], known["status"], known["process"]["number"]) == (kernel, "running", 1)
    address = known["connection"]["ip"]
    assert jupyter.run(kernel, "import os; print(os.environ['POD_IP'])").strip() == address
    assert address not in world.lab(user)["url"], "it has another address than its lab"
    # It is the same user with the same files.
    where = jupyter.run(kernel, "import os; open('made-by-kernel', 'w').close(); print(os.getcwd())").strip()
    assert where.endswith(user)
    assert jupyter.ask("GET", "/contents/made-by-kernel").ok
    assert "JUPYTERHUB_API_TOKEN" not in jupyter.run(kernel, "import os; print(sorted(os.environ))")

    assert jupyter.ask("DELETE", f"/kernels/{kernel}").status_code == 204
    eventually(lambda: not world.kernels(user), what="the kernel is gone")
    assert jupyter.kernel(kernel) is None


def test_an_interrupt_and_a_restart_keep_the_kernel_s_address(world, lab):
    user, jupyter = lab
    kernel = jupyter.start_kernel(KERNEL)
    endless = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)"
    assert "KeyboardInterrupt" in jupyter.run(kernel, endless, interrupt_at="begun")
    jupyter.run(kernel, "x = 1")
    before = world.kernels(user)[0]["connection"]
    assert jupyter.ask("POST", f"/kernels/{kernel}/restart").ok
    assert jupyter.run(kernel, "print(x)") == "NameError", "it begins anew"
    [after] = world.kernels(user)
    assert (after["connection"], after["process"]["number"]) == (before, 2)


def test_a_kernel_that_dies_is_restarted_as_jupyter_does(world, lab, tmp_path):
    user, jupyter = lab
    kernel = jupyter.start_kernel(KERNEL)
    # It must not die before it has said that the cell is done.
    death = tmp_path / "death"
    code = f"while not os.path.exists({str(death)!r}): time.sleep(0.01)\nos._exit(3)"
    jupyter.run(
        kernel, f"import os, threading, time\nthreading.Thread(target=exec, args=[{code!r}, globals()]).start()"
    )
    death.touch()
    eventually(lambda: world.kernels(user)[0]["process"]["number"] == 2, what="the kernel has a new process")
    eventually(lambda: world.kernels(user)[0]["process"]["state"] == "running", what="it runs")
    assert jupyter.run(kernel, "print('again')") == "again\n"


def test_kernels_outlive_a_restart_of_the_service_and_end_with_their_lab(world, lab):
    user, jupyter = lab
    kernel = jupyter.start_kernel(KERNEL)
    jupyter.run(kernel, "x = 'still there'")
    world.stop_service()
    assert jupyter.run(kernel, "print(x)") == "still there\n", "nothing of a cell goes through the service"
    world.start_service()
    eventually(lambda: world.kernels(user)[0]["process"], what="the launcher has reported again")
    assert jupyter.run(kernel, "print(x)") == "still there\n"
    endless = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)"
    assert "KeyboardInterrupt" in jupyter.run(kernel, endless, interrupt_at="begun")

    world.hub_api("DELETE", f"/users/{user}/server")
    eventually(lambda: not world.servers(user), what="the Hub's server is gone")
    assert world.kernels(user) == []


def test_a_kernel_that_cannot_start_says_why_at_once(world, lab):
    user, jupyter = lab
    wrong = {
        "argv": ["no-such-program", "{connection_file}"],
        "display_name": "Wrong",
        "language": "python",
        "metadata": {"kernel_provisioner": {"provisioner_name": "wasmspawner-provisioner", "config": {}}},
    }
    unknown = wrong | {
        "metadata": {"kernel_provisioner": {"provisioner_name": "wasmspawner-provisioner", "config": {"imgae": "x"}}}
    }
    for name, spec, reason in (("wrong", wrong, "127"), ("unknown", unknown, "imgae")):
        folder = world.settings.state / "homes" / user / ".local/share/jupyter/kernels" / name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(spec))
        answer = jupyter.ask("POST", "/kernels", json={"name": name})
        assert answer.status_code >= 400, answer.text
        assert reason in answer.text, answer.text
    eventually(lambda: not world.kernels(user), what="nothing is left")
