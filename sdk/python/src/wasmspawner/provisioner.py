"""A Jupyter kernel provisioner that has the service start each kernel in a pod of its own, beside the user's lab."""

import asyncio
import os
import re
import signal
import sys
from typing import Any

import zmq
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import KernelProvisionerBase, LocalProvisioner
from traitlets import Bool, Dict, Float, List, TraitError, Unicode, default, validate

from .errors import ServiceError, Unreachable
from .kernel_api import KernelApi
from .kernel_errors import KernelNotStarted
from .kernel_start import KernelStart, delete_kernel
from .lab import Lab
from .lab_service import read_token, token_file_of_lab
from .outage_log import OutageLog
from .retries import patiently

_POLL_INTERVAL = 0.2
_POLL_TIMEOUT = 10.0
# How long a signal is repeated while the service is not reachable.
_SIGNAL_OUTAGE = 5.0


class WasmSpawnerProvisioner(KernelProvisionerBase):
    """Starts, watches and stops one kernel by the service's REST API.

    The kernel is deleted only by `cleanup` without restart. `kill` and `terminate` end its process and leave its pod,
    because `KernelManager.restart_kernel(now=True)` calls `kill(restart=False)`.
    """

    policy_options = Dict(config=True, help="Options for the site's policy, like those of the spawn form.")
    image = Unicode(config=True, help="The image of the kernel's pod; becomes the policy's option `image`.")
    timeout = Float(600.0, config=True, help="Seconds within which a kernel has to start.")
    shutdown_wait_time = Float(
        None,
        allow_none=True,
        config=True,
        min=0.0,
        help="Seconds in which a kernel may end by itself when it is shut down. Default: those of the kernel manager.",
    )
    stable_start_time = Float(
        None,
        allow_none=True,
        config=True,
        min=0.0,
        help="Seconds after which a kernel that runs has started well. Default: those of the kernel restarter.",
    )
    url = Unicode(config=True, help="The service's API. Default: $WASMSPAWNER_URL.")
    token = Unicode(config=True, help="The token for the service. Default: $WASMSPAWNER_TOKEN.")
    token_file = Unicode(config=True, help="A file with the token. Default: $WASMSPAWNER_TOKEN_FILE.")
    user = Unicode(config=True, help="The lab's user. Default: $JUPYTERHUB_USER.")
    server = Unicode(config=True, help="The lab's server. Default: $JUPYTERHUB_SERVER_NAME, else the default server.")
    pass_env = List(
        Unicode(),
        config=True,
        help="Variables of the Jupyter server that the kernel gets; a `*` at the end stands for any characters.",
    )
    fall_back = Bool(
        config=True, help="Start kernels in the lab itself if the service cannot be reached or has no URL."
    )

    @default("url")
    def _default_url(self) -> str:
        return os.environ.get("WASMSPAWNER_URL", "")

    @default("user")
    def _default_user(self) -> str:
        return os.environ.get("JUPYTERHUB_USER", "")

    @default("server")
    def _default_server(self) -> str:
        return os.environ.get("JUPYTERHUB_SERVER_NAME", "")

    def __init__(self, **kwargs: Any) -> None:
        # traitlets accepts arguments that it does not know, so a misspelt key would have no effect.
        known = self.class_traits(config=True)
        if unknown := kwargs.keys() - known.keys() - {"kernel_id", "kernel_spec", "parent"}:
            raise KernelNotStarted(
                f"metadata.kernel_provisioner.config of the kernel.json has unknown keys: {', '.join(sorted(unknown))}; "
                f"known keys are {', '.join(sorted(known))}"
            )
        super().__init__(**kwargs)
        self._has_process = False
        self._restarting = False
        # True if the kernel was killed, whether or not its pod can do that.
        self._killed = False
        # True if the service has a kernel that this object, or the one that it was loaded from, has started.
        self._created = False
        self._outage = OutageLog(f"kernel {self.kernel_id}")

    @validate("pass_env")
    def _valid_pass_env(self, proposal: Any) -> Any:
        for name in proposal["value"]:
            if "*" in name[:-1]:
                raise TraitError(f"pass_env: '{name}' has a `*` that is not at its end")
        return proposal["value"]

    # The waiting times of Jupyter

    def get_shutdown_wait_time(self, recommended: float = 5.0) -> float:
        """How long the kernel may take to end by itself."""
        return recommended if self.shutdown_wait_time is None else self.shutdown_wait_time

    def get_stable_start_time(self, recommended: float = 10.0) -> float:
        """How long the kernel has to run before its start counts as successful."""
        return recommended if self.stable_start_time is None else self.stable_start_time

    # The service

    @property
    def _api(self) -> KernelApi:
        return KernelApi(self.url, Lab(self.user, self.server), self.kernel_id, self._read_token)

    def _read_token(self) -> str:
        """The token; read for each request, because it may change. The configuration has precedence."""
        path = self.token_file or ("" if self.token else token_file_of_lab())
        return read_token(path) if path else self.token or os.environ.get("WASMSPAWNER_TOKEN", "")

    def _require_settings(self) -> None:
        has_token = self.token or self.token_file or "WASMSPAWNER_TOKEN_FILE" in os.environ or self._read_token()
        for what, value, variable, key in (
            ("the service's URL", self.url, "WASMSPAWNER_URL", "url"),
            ("the name of the lab's user", self.user, "JUPYTERHUB_USER", "user"),
            ("a token for the service", has_token, "WASMSPAWNER_TOKEN_FILE or WASMSPAWNER_TOKEN", "token_file"),
        ):
            if not value:
                raise KernelNotStarted(
                    f"The kernel cannot be started without {what}: set the environment variable {variable} of the "
                    f"Jupyter server, or '{key}' in metadata.kernel_provisioner.config of the kernel.json."
                )

    async def _why_not_available(self) -> str:
        if not self.url:
            return "no URL of the service is configured"
        self._require_settings()
        try:
            await self._api.get(time_limit=_POLL_TIMEOUT)
        except Unreachable as error:
            return str(error)
        except ServiceError:
            pass  # the service answers, so it is the one to say what is wrong
        return ""

    # Start

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Build the kernel's command and variables."""
        manager = self.parent
        if self.fall_back and not self._created and (reason := await self._why_not_available()):
            self.log.warning("kernel %s is started in the lab itself, because %s", self.kernel_id, reason)
            # From now on the manager calls the provisioner of local kernels, for this kernel's whole life.
            manager.provisioner = LocalProvisioner(
                kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=manager
            )
            return await manager.provisioner.pre_launch(**kwargs)
        self._require_settings()
        self._make_curve_keys(kwargs.pop("transport_encryption", getattr(manager, "transport_encryption", "disabled")))
        given = kwargs.pop("env", None) or {}
        kwargs = await super().pre_launch(env={**os.environ, **given}, **kwargs)
        # Jupyter adds a few variables to all those of the server, which do not belong into another pod.
        wanted = {name for name, value in given.items() if os.environ.get(name) != value}
        wanted.update(name for name in given if name.startswith("JPY_SESSION_"))
        wanted.update(self.kernel_spec.env)
        wanted.update(name for name in os.environ if self._passes(name))
        kwargs["env"] = {name: value for name, value in kwargs["env"].items() if name in wanted}
        kwargs["cmd"] = self._command(kwargs.pop("extra_arguments", None) or [])
        return kwargs

    def _passes(self, name: str) -> bool:
        return any(name.startswith(p[:-1]) if p.endswith("*") else name == p for p in self.pass_env)

    def _command(self, extra_arguments: list[str]) -> list[str]:
        """The kernel's command, with the place of the connection file left open: it is in the kernel's pod."""
        values = {"resource_dir": self.kernel_spec.resource_dir, "prefix": sys.prefix}

        def value(match: re.Match[str]) -> str:
            return values.get(match.group(1), match.group())

        return [re.sub(r"\{([A-Za-z0-9_]+)\}", value, word) for word in [*self.kernel_spec.argv, *extra_arguments]]

    def _make_curve_keys(self, encryption: Any) -> None:
        """Make the keys of an encrypted kernel as `LocalProvisioner` does; a restart keeps them."""
        manager = self.parent
        if not hasattr(manager, "_transport_encryption_policy"):
            return  # jupyter_client before 8.10
        policy = manager._transport_encryption_policy(encryption)
        encrypted = policy == "required" or (policy == "auto" and manager._kernel_supports_curve_encryption())
        if encrypted and manager.curve_publickey is None:
            manager.curve_publickey, manager.curve_secretkey = zmq.curve_keypair()

    def _secrets(self) -> dict[str, str]:
        """What client and kernel share. The manager makes it, and keeps it across restarts."""
        manager = self.parent
        secrets = {"key": manager.session.key.decode(), "signature_scheme": manager.session.signature_scheme}
        for name in ("curve_publickey", "curve_secretkey"):
            if key := getattr(manager, name, None):
                secrets[name] = key.decode()
        return secrets

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Have the service start the kernel, and return its address when it runs."""
        secrets = self._secrets()
        request = {
            "kernel_name": self.parent.kernel_name,
            "command": cmd,
            "env": kwargs.get("env", {}),
            "options": {**self.policy_options, **({"image": self.image} if self.image else {})},
            "working_dir": str(kwargs["cwd"]) if kwargs.get("cwd") else None,
            "connection": {**secrets, "kernel_name": self.parent.kernel_name},
        }
        start = KernelStart(self._api, self.timeout, created=self._created, restart=self._restarting)
        # A failed start deletes the kernel.
        self._created = self._restarting = self._killed = False
        try:
            kernel = await start.run(request)
        except BaseException:
            self._created = start.left_behind
            raise
        self._created = self._has_process = True
        # `KernelManager` compares the key as bytes and the Curve keys as str with those that it has.
        self.connection_info = {**kernel.connection, **secrets, "key": secrets["key"].encode()}
        return self.connection_info

    # The running kernel

    @property
    def has_process(self) -> bool:
        """True from the kernel's start to its cleanup."""
        return self._has_process

    async def poll(self) -> int | None:
        """None if the kernel is alive, else its exit code; 1 for a kernel that failed or is gone.

        While the service cannot say, the kernel is taken to be alive: Jupyter would start a dead one anew.
        """
        if not self._has_process:
            return 0
        try:
            kernel = await self._api.get(time_limit=_POLL_TIMEOUT)
        except ServiceError as error:
            self._outage.failed(error)
            return None
        self._outage.succeeded()
        if kernel is None or kernel.status == "failed":
            return 1
        if self._killed and not kernel.process:
            return -signal.SIGKILL
        return kernel.ended_with

    async def wait(self) -> int | None:
        """Wait for the kernel's end."""
        while (exit_code := await self.poll()) is None:  # noqa: ASYNC110 - the end is in another pod
            await asyncio.sleep(_POLL_INTERVAL)
        return exit_code

    async def send_signal(self, signum: int) -> None:
        """Signal the kernel's process group, if it still runs."""
        if signum == 0:
            return await self.poll()
        api = self._api
        # A shutdown goes on, to the deletion of the kernel.
        outage = 0.0 if self._killed or getattr(self.parent, "shutting_down", False) else _SIGNAL_OUTAGE
        try:
            if not await patiently(lambda: api.signal(int(signum)), outage):
                self.log.debug("kernel %s has no process to get signal %d", self.kernel_id, signum)
        except ServiceError as error:
            if outage:
                raise RuntimeError(f"The kernel was not sent signal {int(signum)}: {error}") from error
            self.log.warning("kernel %s was not sent signal %d: %s", self.kernel_id, signum, error)
        return None

    async def kill(self, restart: bool = False) -> None:
        """Kill the kernel's process group. Its pod stays."""
        self._killed = True
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """Ask the kernel's process group to end. Its pod stays."""
        await self.send_signal(signal.SIGTERM)

    async def cleanup(self, restart: bool = False) -> None:
        """Delete the kernel, except before a restart."""
        self._has_process = False
        self._restarting = restart
        if self._created and not restart:
            self._created = False
            await delete_kernel(self._api)

    # Another client process

    async def get_provisioner_info(self) -> dict[str, Any]:
        """All that another process needs to control this kernel, except a token. Can be written as JSON."""
        info = await super().get_provisioner_info()
        connection = dict(info["connection_info"])
        if isinstance(connection.get("key"), bytes):
            connection["key"] = connection["key"].decode()
        lab = {"url": self.url, "user": self.user, "server": self.server}
        return {**info, **lab, "connection_info": connection}

    async def load_provisioner_info(self, provisioner_info: dict[str, Any]) -> None:
        """Take over a kernel from another process. Its own configuration of the URL has precedence."""
        await super().load_provisioner_info(provisioner_info)
        self.connection_info = dict(self.connection_info)
        if isinstance(self.connection_info.get("key"), str):
            self.connection_info["key"] = self.connection_info["key"].encode()
        self.url = self.url or provisioner_info.get("url", "")
        self.user = provisioner_info.get("user", self.user)
        self.server = provisioner_info.get("server", self.server)
        self._outage = OutageLog(f"kernel {self.kernel_id}")
        self._created = self._has_process = True
