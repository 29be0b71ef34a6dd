"""The settings of the provisioner, and what it does without the service."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fake_kernels import problem
from jupyter_client.provisioning import LocalProvisioner
from traitlets import TraitError


async def test_unknown_keys_of_the_stanza_are_named(manager):
    with pytest.raises(RuntimeError, match=r"unknown keys: imag, size; known keys are fall_back, image, .*, user"):
        await manager({"imag": "x", "size": 1}).start_kernel()


@pytest.mark.parametrize("config", [{"timeout": "long"}, {"pass_env": ["A*B"]}, {"policy_options": []}])
async def test_wrong_values_of_the_stanza_are_refused(manager, config):
    with pytest.raises(TraitError, match=next(iter(config))):
        await manager(config).start_kernel()


@pytest.mark.parametrize(
    ("variable", "key"),
    [("WASMSPAWNER_URL", "url"), ("JUPYTERHUB_USER", "user"), ("WASMSPAWNER_TOKEN", "token_file")],
)
async def test_a_missing_setting_is_named(manager, lab_env, variable, key):
    lab_env.delenv(variable)
    with pytest.raises(RuntimeError, match=rf"{variable}.*'{key}'"):
        await manager().start_kernel()


async def test_waiting_times_are_those_of_jupyter_unless_they_are_set(fake, manager):
    km = manager()
    await km.start_kernel()
    assert km.provisioner.get_shutdown_wait_time(recommended=7.0) == 7.0
    assert km.provisioner.get_stable_start_time(recommended=11.0) == 11.0
    await km.shutdown_kernel(now=True)
    km = manager({"shutdown_wait_time": 30, "stable_start_time": 60})
    await km.start_kernel()
    assert km.provisioner.get_shutdown_wait_time(recommended=7.0) == 30.0
    assert km.provisioner.get_stable_start_time(recommended=11.0) == 60.0
    await km.shutdown_kernel(now=True)


def test_jupyter_lists_the_provisioner_of_an_installed_package(tmp_path):
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    installed = tmp_path / "wasmspawner-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    (installed / "entry_points.txt").write_text("\n".join(lines))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "jupyter_client.kernelspecapp", "provisioners"]
    listed = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    assert "wasmspawner-provisioner" in listed.stdout + listed.stderr
    assert "wasmspawner.provisioner:WasmSpawnerProvisioner" in listed.stdout + listed.stderr


LOCAL = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9/spawner/v1"], ids=["missing", "unreachable"])
async def test_where_it_is_allowed_kernels_start_in_the_lab_without_the_service(fake, manager, lab_env, url):
    lab_env.setenv("WASMSPAWNER_URL", url)
    km = manager({"fall_back": True}, argv=LOCAL)
    await km.start_kernel()
    assert isinstance(km.provisioner, LocalProvisioner)
    assert await km.is_alive()
    await km.shutdown_kernel(now=True)
    assert fake.requests == []


async def test_a_reachable_service_decides(fake, manager):
    fake.answers["POST"] = [lambda _: problem(403, "no")]
    with pytest.raises(PermissionError):
        await manager({"fall_back": True}, argv=LOCAL).start_kernel()


def test_neither_the_package_nor_the_provisioner_need_what_they_do_not_use():
    code = (
        "import sys, wasmspawner; assert 'jupyter_client' not in sys.modules and 'jupyterhub' not in sys.modules\n"
        "import wasmspawner.provisioner; assert 'jupyterhub' not in sys.modules\n"
        "from wasmspawner import WasmSpawner; assert WasmSpawner.__name__ == 'WasmSpawner'\n"
    )
    paths = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": paths})
