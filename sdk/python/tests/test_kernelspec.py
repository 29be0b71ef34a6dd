import json
import os
import stat
import sys

import pytest
from jupyter_client import kernelspec as jupyter
from jupyter_client.kernelspec import KernelSpecManager

from wasmspawner.command import main

PYTHON = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]


@pytest.fixture(autouse=True)
def jupyter_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "user"))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "prefix" / "share" / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(jupyter, "SYSTEM_JUPYTER_PATH", [str(tmp_path / "system")])


def written(folder, name="gpu"):
    return json.loads((folder / "kernels" / name / "kernel.json").read_text())


def test_a_python_kernel_needs_only_a_name(tmp_path, capsys):
    assert main(["kernelspec", "add", "gpu", "--user"]) == 0
    assert written(tmp_path / "user") == {
        "argv": PYTHON,
        "display_name": "gpu",
        "language": "python",
        "interrupt_mode": "signal",
        "metadata": {"kernel_provisioner": {"provisioner_name": "wasmspawner-provisioner", "config": {}}},
    }
    assert capsys.readouterr().out == f"Wrote {tmp_path}/user/kernels/gpu/kernel.json\n"


def test_options_and_command_are_written(tmp_path):
    options = ["--display-name", "R (big)", "--language", "R", "--image", "registry/r:4", "--curve"]
    policy = ["--option", "size=large", "--option", "gpu=1", "--option", "note=a=b"]
    command = ["R", "--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"]
    assert main(["kernelspec", "add", "R-big", "--user", *options, *policy, "--", *command]) == 0
    spec = written(tmp_path / "user", "r-big")
    assert spec["argv"] == command
    assert spec["metadata"]["supported_encryption"] == ["curve"]
    assert spec["metadata"]["kernel_provisioner"]["config"] == {
        "image": "registry/r:4",
        "policy_options": {"size": "large", "gpu": 1, "note": "a=b"},
    }


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        ([], "system"),
        (["--user"], "user"),
        (["--sys-prefix"], "environment/share/jupyter"),
        (["--prefix", "{tmp}/prefix"], "prefix/share/jupyter"),
    ],
)
def test_the_place_is_that_of_jupyter(tmp_path, place, folder):
    assert main(["kernelspec", "add", "gpu", *(word.format(tmp=tmp_path) for word in place)]) == 0
    assert written(tmp_path / folder)["language"] == "python"
    mode = stat.S_IMODE((tmp_path / folder / "kernels" / "gpu").stat().st_mode)
    assert mode & 0o055 == 0o055 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_jupyter_finds_the_kernel(tmp_path):
    assert main(["kernelspec", "add", "gpu", "--user"]) == 0
    assert KernelSpecManager().find_kernel_specs()["gpu"] == str(tmp_path / "user" / "kernels" / "gpu")


def test_an_existing_kernel_is_only_replaced_on_request(tmp_path, capsys):
    assert main(["kernelspec", "add", "gpu", "--user"]) == 0
    assert main(["kernelspec", "add", "gpu", "--user", "--image", "i"]) == 1
    assert "`--replace` replaces it" in capsys.readouterr().err
    assert main(["kernelspec", "add", "gpu", "--user", "--image", "i", "--replace"]) == 0
    assert written(tmp_path / "user")["metadata"]["kernel_provisioner"]["config"] == {"image": "i"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["add", "a b", "--user"], "Invalid kernel name 'a b'"),
        (["add", "..", "--user", "--replace"], "Invalid kernel name '..'"),
        (["add", "julia", "--language", "julia"], "the language julia needs a command"),
        (["add", "gpu", "--", "python", "kernel.py"], "no {connection_file}"),
        (["add", "gpu", "--option", "size"], "--option size: an option is KEY=VALUE"),
        (["add", "gpu", "--prefix", "/dev/null"], "cannot write"),
        (["remove", "gpu"], "the kernel gpu does not exist"),
    ],
)
def test_errors_say_what_is_wrong(capsys, arguments, error):
    assert main(["kernelspec", *arguments]) == 1
    assert error in capsys.readouterr().err


def test_only_kernels_of_this_provisioner_are_listed_and_removed(tmp_path, capsys):
    local = tmp_path / "user" / "kernels" / "local"
    local.mkdir(parents=True)
    (local / "kernel.json").write_text(json.dumps({"argv": PYTHON, "display_name": "Local", "language": "python"}))
    assert main(["kernelspec", "list"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["kernelspec", "add", "gpu", "--user", "--image", "i"]) == 0
    capsys.readouterr()
    assert main(["kernelspec", "list"]) == 0
    assert capsys.readouterr().out == f'gpu  {tmp_path}/user/kernels/gpu  {{"image": "i"}}\n'
    assert main(["kernelspec", "remove", "local"]) == 1
    assert "runs in the lab itself" in capsys.readouterr().err
    assert main(["kernelspec", "remove", "GPU"]) == 0
    assert not (tmp_path / "user" / "kernels" / "gpu").exists()
    assert local.exists()


@pytest.mark.parametrize("arguments", [["--help"], ["kernelspec", "--help"], ["kernelspec", "add", "--help"]])
def test_help_is_printed(capsys, arguments):
    with pytest.raises(SystemExit, match="0"):
        main(arguments)
    assert "wasmspawner" in capsys.readouterr().out


def test_wrong_usage_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["kernelspec", "add", "gpu", "--user", "--sys-prefix"])
    assert main(["kernelspec", "list", "--", "python"]) == 2


def test_without_jupyter_client_the_command_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupyter_client.kernelspec", None)
    assert main(["kernelspec", "list"]) == 1
    assert "wasmspawner[lab]" in capsys.readouterr().err
