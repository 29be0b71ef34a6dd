"""The command `wasmspawner kernelspec`: adds, lists and removes kernels that run in pods of their own."""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from .command_error import CommandError

PROVISIONER = "wasmspawner-provisioner"
_PYTHON_COMMAND = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]


def add_topic(topics: Any) -> None:
    """Add the verbs of this topic to the command's parser."""
    kernelspec = topics.add_parser("kernelspec", help="kernels that run in pods of their own")
    verbs = kernelspec.add_subparsers(required=True, metavar="VERB")

    adding = verbs.add_parser(
        "add",
        help="write a kernel.json",
        usage="wasmspawner kernelspec add NAME [options] [-- COMMAND...]",
        description="Write a kernel.json whose kernels the service starts in pods of their own.",
        epilog="COMMAND starts the kernel, with {connection_file} among its words. It is looked up in the kernel's "
        f"image. Default for the language python: {' '.join(_PYTHON_COMMAND)}",
    )
    adding.add_argument("name", metavar="NAME", help="the kernel's name: ASCII letters, digits, '-', '.' and '_'")
    adding.add_argument("--language", default="python", help="the kernel's language (default: python)")
    adding.add_argument("--display-name", help="the name that Jupyter shows (default: NAME)")
    adding.add_argument("--image", help="the image of the kernel's pod")
    adding.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option for the site's policy, may be repeated; a VALUE that is JSON counts as such (gpu=1, big=true)",
    )
    adding.add_argument(
        "--curve",
        action="store_true",
        help="the kernel can encrypt its connections by CurveZMQ (ipykernel 7 or later)",
    )
    adding.add_argument("--replace", action="store_true", help="replace a kernel of that name in the same place")
    place = adding.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="for this user only (default: for the whole system)")
    place.add_argument("--sys-prefix", action="store_true", help="in the environment of this Python")
    place.add_argument("--prefix", help="in PREFIX/share/jupyter/kernels")
    adding.set_defaults(run=add, takes_command=True)

    listing = verbs.add_parser("list", help="list the kernels that run in pods of their own")
    listing.set_defaults(run=list_all)

    removing = verbs.add_parser("remove", help="remove a kernel that `add` has written")
    removing.add_argument("name", metavar="NAME")
    removing.set_defaults(run=remove)


def add(options: argparse.Namespace) -> None:
    """Write a kernel.json."""
    manager = _manager()
    spec = kernel_json(options)
    if not options.name.strip("."):
        # Jupyter allows such a name, and `--replace` would delete the folder of all kernels, or the one above.
        raise CommandError(f"Invalid kernel name '{options.name}'")
    prefix = sys.prefix if options.sys_prefix else options.prefix
    with tempfile.TemporaryDirectory() as temporary:
        # Jupyter copies the folder with its mode, and that of a temporary folder is private.
        source = Path(temporary) / "kernel"
        source.mkdir()
        (source / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n")
        try:
            # The method to ask where a kernel would be installed is not public.
            place = Path(manager._get_destination_dir(options.name.lower(), user=options.user, prefix=prefix))
            if place.exists() and not options.replace:
                raise CommandError(f"there is a kernel in {place} already; `--replace` replaces it")
            place = manager.install_kernel_spec(str(source), options.name, user=options.user, prefix=prefix)
        except ValueError as error:  # of an invalid name
            raise CommandError(str(error)) from error
        except PermissionError as error:
            hint = "" if options.user or prefix else "; `--user` and `--sys-prefix` install elsewhere"
            raise CommandError(f"cannot write {error.filename}: {error.strerror}{hint}") from error
        except (OSError, shutil.Error) as error:
            raise CommandError(f"cannot write the kernel: {error}") from error
    print(f"Wrote {Path(place) / 'kernel.json'}")


def kernel_json(options: argparse.Namespace) -> dict[str, Any]:
    """The content of the kernel.json that the options of `add` describe."""
    command = options.command
    if not command:
        if options.language != "python":
            raise CommandError(
                f"the language {options.language} needs a command: add `-- COMMAND...`, with {{connection_file}} among "
                "its words"
            )
        command = _PYTHON_COMMAND
    if not any("{connection_file}" in word for word in command):
        raise CommandError("the command has no {connection_file} among its words, so the kernel could not be reached")
    config: dict[str, Any] = {}
    if options.image:
        config["image"] = options.image
    if options.option:
        config["policy_options"] = dict(_key_and_value(option) for option in options.option)
    metadata: dict[str, Any] = {"kernel_provisioner": {"provisioner_name": PROVISIONER, "config": config}}
    if options.curve:
        metadata["supported_encryption"] = ["curve"]
    return {
        "argv": command,
        "display_name": options.display_name or options.name,
        "language": options.language,
        "interrupt_mode": "signal",
        "metadata": metadata,
    }


def _key_and_value(option: str) -> tuple[str, Any]:
    key, separator, value = option.partition("=")
    if not key or not separator:
        raise CommandError(f"--option {option}: an option is KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def list_all(_options: argparse.Namespace) -> None:
    """Print the kernels that run in pods of their own."""
    ours = _ours(_manager())
    width = max(map(len, ours), default=0)
    for name, (folder, config) in sorted(ours.items()):
        print(f"{name:{width}}  {folder}  {json.dumps(config)}")
    if not ours:
        print("No kernels run in pods of their own; `wasmspawner kernelspec add` adds one.", file=sys.stderr)


def remove(options: argparse.Namespace) -> None:
    """Remove a kernel that runs in pods of its own."""
    manager = _manager()
    name = options.name.lower()
    if name not in _ours(manager):
        what = "runs in the lab itself" if name in manager.find_kernel_specs() else "does not exist"
        raise CommandError(f"the kernel {options.name} {what}; `wasmspawner kernelspec list` lists those to remove")
    try:
        print(f"Removed {manager.remove_kernel_spec(name)}")
    except OSError as error:
        raise CommandError(f"cannot remove the kernel: {error}") from error


def _ours(manager: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """Folder and configuration, by name, of the kernels with this provisioner.

    The files are read directly, because Jupyter hides kernels whose provisioner is not installed.
    """
    found = {}
    for name, folder in manager.find_kernel_specs().items():
        try:
            stanza = json.loads((Path(folder) / "kernel.json").read_text())["metadata"]["kernel_provisioner"]
            if stanza["provisioner_name"] == PROVISIONER:
                found[name] = (folder, stanza.get("config", {}))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _manager() -> Any:
    try:
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError as error:
        raise CommandError("this needs jupyter_client: install `wasmspawner[lab]`") from error
    return KernelSpecManager(ensure_native_kernel=False)
