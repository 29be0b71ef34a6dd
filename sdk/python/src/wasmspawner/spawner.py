"""The spawner class that JupyterHub loads: `c.JupyterHub.spawner_class = "wasmspawner"`."""

import asyncio
import math
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from jupyterhub.spawner import Spawner
from traitlets import Float, Integer, TraitError, Unicode, default, validate

from .client import ClientOptions, ServiceClient
from .errors import LabError, Refused, ServiceError, for_user
from .lab import Lab
from .lab_address import note_move, present_url
from .lab_stop import LabStop
from .options import options_from_form
from .progress import ProgressEvent, ProgressLog
from .retries import Retries
from .spawn_request import SpawnRequest
from .status_cache import StatusCache
from .token_file import TokenFile


class WasmSpawner(Spawner):
    """Starts a user's lab by requesting it from the wasmspawner service.

    The service decides on images, sizes, quotas and volumes. `mem_limit`, `mem_guarantee`, `cpu_limit`,
    `cpu_guarantee`, `cmd` and `args` of this class are therefore not used.
    """

    api_url = Unicode(
        "http://127.0.0.1:8090/spawner/v1",
        config=True,
        help="""Base URL of the service's API, with its version: `http://wasmspawner.hub.svc:8090/spawner/v1`.""",
    )

    api_ca_file = Unicode(
        "",
        config=True,
        help="""PEM file of the authority that signed the service's certificate. Empty: the system's authorities.""",
    )

    token = Unicode(
        config=True,
        help="""
        The Hub's own token for the service; needs the scope `admin:jupyterhub`.

        Default: the environment variable `WASMSPAWNER_TOKEN`. `token_file` has precedence.
        """,
    )

    token_file = Unicode(
        config=True,
        help="""
        A file with the Hub's own token; read again whenever it changes.

        Default: the environment variable `WASMSPAWNER_TOKEN_FILE`.
        """,
    )

    auth_state_token_key = Unicode(
        "token",
        config=True,
        help="""
        Key of the authentication state that holds the user's own token for the service.

        The spawn form is fetched and the lab is started with it. Without it the form is fetched with the Hub's token, and
        the lab started with the server's own API token, for which the service needs `jupyterhub` in its `auth.modes`.
        """,
    )

    connect_timeout = Float(15, min=0.1, config=True, help="""Seconds to wait for a connection to the service.""")

    request_timeout = Float(
        30, min=0.1, config=True, help="""Seconds for one request to the service; event streams have no such limit."""
    )

    retry_for = Float(
        45,
        min=0,
        config=True,
        help="""Seconds to go on asking while the service is away before an error. A service that ends finishes the spawns
        that have begun first (its `limits.drain`, 20 s), and then another process takes over or is started.""",
    )

    silence_timeout = Float(
        45,
        min=1,
        config=True,
        help="""Seconds without a byte after which an event stream is opened anew. The service sends a sign of life
        every 15 seconds.""",
    )

    stop_timeout = Float(
        120,
        min=1,
        config=True,
        help="""Seconds for a lab to stop, a restart of the service included; the service's own limit is 60.""",
    )

    max_requests = Integer(
        64,
        min=1,
        config=True,
        help="""Requests that users wait for (forms, starts, stops) at any one time, for the whole Hub. Event streams
        do not count.""",
    )

    max_status_requests = Integer(
        16,
        min=1,
        config=True,
        help="""Requests of polls at any one time, for the whole Hub, besides `max_requests`.""",
    )

    status_interval = Float(
        5,
        min=0.1,
        config=True,
        help="""Seconds for which one answer about all labs serves the polls of all spawners. A service that has no such
        answer is asked about each lab by itself.""",
    )

    @default("token")
    def _token_default(self) -> str:
        return os.environ.get("WASMSPAWNER_TOKEN", "")

    @default("token_file")
    def _token_file_default(self) -> str:
        return os.environ.get("WASMSPAWNER_TOKEN_FILE", "")

    @validate("api_url")
    def _validate_api_url(self, proposal: Any) -> str:
        url = urlsplit(proposal.value)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise TraitError(f"WasmSpawner.api_url is {proposal.value!r}; it must be an http(s) URL")
        return proposal.value.rstrip("/")

    # Defaults that differ from the base class, which is written for processes on the Hub's machine.

    @default("ip")
    def _ip_default(self) -> str:
        return "0.0.0.0"

    @default("port")
    def _port_default(self) -> int:
        return 8888

    @default("env_keep")
    def _env_keep_default(self) -> list[str]:
        return []  # the Hub's PATH is of no use in a container

    @default("start_timeout")
    def _start_timeout_default(self) -> int:
        return 630  # the service ends a spawn after 10 minutes, and says why

    @default("options_form")
    def _options_form_default(self) -> Any:
        return WasmSpawner._fetch_options_form

    @default("apply_user_options")
    def _apply_user_options_default(self) -> Any:
        # The options are passed to the service unchanged. Without this, JupyterHub 5.3 and later log a warning.
        return lambda spawner, user_options: None

    def __init__(self, **kwargs: Any) -> None:
        self._log_of_operation = ProgressLog()
        self._starting = False
        # When the last start or stop began or ended.
        self._operation_at = -math.inf
        # The last result of poll(). A spawner that was neither started nor loaded has no lab.
        self._last_status: int | None = 0
        super().__init__(**kwargs)

    # The spawn form

    @staticmethod
    async def _fetch_options_form(spawner: "WasmSpawner") -> str:
        try:
            token = await spawner._user_token() or spawner._hub_token()
            form = await spawner._client.spawn_form(spawner._lab, token)
        except ServiceError as error:
            raise for_user(error, f"fetching the spawn form of {spawner._log_name}") from error
        return form if form.strip() else ""

    def options_from_form(self, form_data: dict[str, list[Any]]) -> dict[str, Any]:
        """Convert the form's lists to single values, `"true"` and `"false"` to booleans."""
        return options_from_form(form_data)

    # The lab

    async def start(self) -> str:
        """Start the lab, wait until it answers and return its URL."""
        log = self._new_log()
        self._starting = True
        self._last_status = None
        self._touch()
        try:
            request = await self._spawn_request()
            await request.submit()
            if await self._was_interrupted(log):
                # The user need not start the lab again because the service restarted.
                await log.go_on("The service that starts labs was restarted. Starting your lab again.")
                await request.submit()
                await self._follow(log)
            if log.failed:
                raise LabError(500, log.failure)
            return await self._running_url()
        except ServiceError as error:
            raise for_user(error, f"starting the lab of {self._log_name}") from error
        finally:
            self._starting = False
            self._touch()
            await log.end()

    async def _spawn_request(self) -> SpawnRequest:
        return SpawnRequest(
            self._client,
            self._lab,
            await self._user_token() or self.api_token,
            dict(self.user_options),
            {key: str(value) for key, value in self.get_env().items() if value is not None},
            hub_token=self._hub_token,
            stop_timeout=self.stop_timeout,
        )

    async def _was_interrupted(self, log: ProgressLog) -> bool:
        """Follow the spawn to its end. True if it failed because the service restarted, and is still wanted."""
        try:
            await self._follow(log)
            interrupted = log.failed and await self._says_interrupted()
        except Refused as error:
            if not error.no_lab:
                raise
            interrupted = True  # the service has lost even the record of the accepted spawn
        return interrupted and self._log_of_operation is log

    async def _says_interrupted(self) -> bool:
        try:
            lab = await self._client.lab(self._lab, self._hub_token())
        except ServiceError:
            return False  # show why the spawn failed, not why the lab could not be read
        return lab is not None and lab.interrupted

    async def _running_url(self) -> str:
        lab = await self._client.lab(self._lab, self._hub_token())
        if lab is None or lab.status != "running" or lab.address is None:
            # Another caller stopped the lab in the meantime; the events are those of that stop.
            raise LabError(500, (lab and lab.message) or "The lab was stopped before it was ready.")
        return str(lab.address)

    async def stop(self, now: bool = False) -> None:
        """Stop the lab and wait until it is gone. `now` has no effect: the service decides the grace period."""
        log = self._new_log()
        self._touch()
        try:
            await LabStop(self._client, self._lab, self._hub_token, self.stop_timeout).run(log)
        except ServiceError as error:
            raise for_user(error, f"stopping the lab of {self._log_name}") from error
        finally:
            self._touch()
            await log.end()
        self._last_status = 0

    async def delete_forever(self) -> None:
        """Delete the volumes of a server that the Hub deletes, as far as the site's policies allow.

        A volume that another server of the user has used stays.
        """
        try:
            deleted, kept = await self._release_volumes()
        except ServiceError as error:
            raise for_user(error, f"deleting the volumes of {self._log_name}") from error
        if deleted or kept:
            self.log.info("Volumes of %s: deleted %s, kept %s", self._log_name, deleted, kept)

    async def _release_volumes(self) -> tuple[list[str], list[str]]:
        # A stop ends when the lab's pod is gone. Its other objects, which may still use the volumes, can take longer.
        retries = Retries(self.stop_timeout, longest=5.0)
        while True:
            try:
                return await self._client.release_volumes(self._lab, self._hub_token())
            except Refused as error:
                if "volumes_in_use" not in error.types:
                    raise
                await retries.pause(error)

    async def _follow(self, log: ProgressLog) -> None:
        async with aclosing(self._client.events(self._lab, self._hub_token())) as batches:
            async for batch in batches:
                if await log.apply(batch):
                    return

    async def poll(self) -> int | None:
        """None while there is a lab (starting, running, terminating), 0 if it failed or does not exist.

        Only an answer of the service changes the result. While the service is not reachable, restarts or refuses the
        Hub's token, the last result is repeated: labs survive the service, and the Hub would otherwise stop all of
        them.
        """
        if self._starting:
            return None  # between start() and its acceptance there is no lab yet
        operation_at = self._operation_at
        alive = await self._statuses.is_alive(self._lab, self._hub_token, since=operation_at)
        # An answer to a request from before a start or a stop is not used afterwards.
        if alive is not None and operation_at == self._operation_at:
            self._last_status = None if alive else 0
            if note_move(self.server, self._statuses.listed_address(self._lab)):
                self.log.info("The lab of %s goes on at %s; the proxy follows soon", self._log_name, self.server.ip)
                self.db.commit()
        return None if self._starting else self._last_status

    async def get_url(self) -> str:
        """The URL of a lab that has been running since before this Hub started; waits for a lab that is still
        starting."""
        try:
            lab = await self._client.lab(self._lab, self._hub_token())
            if lab is not None and lab.status == "starting":
                self._log_of_operation = log = ProgressLog()
                try:
                    await self._follow(log)
                finally:
                    await log.end()
                lab = await self._client.lab(self._lab, self._hub_token())
        except (ServiceError, LabError) as error:
            self.log.warning("The address of the lab of %s is unknown: %s", self._log_name, error)
            lab = None
        return present_url(self.server, lab.address if lab is not None else None)

    async def progress(self) -> AsyncIterator[ProgressEvent]:
        """The events of the start or stop under way, from the first, until it has ended."""
        async for event in self._log_of_operation.follow():
            yield event

    # State

    def get_state(self) -> dict[str, Any]:
        """The progress of the last operation. JupyterHub treats a spawner without state as one without a lab."""
        return {**super().get_state(), **self._log_of_operation.to_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        super().load_state(state)
        if "events" in state:
            self._log_of_operation = ProgressLog.from_state(state)
            # Until the service answers: the Hub would not have stored a state for a lab that was stopped.
            self._last_status = None if state["events"] else 0

    def clear_state(self) -> None:
        """Discard the last operation."""
        super().clear_state()
        self._log_of_operation = ProgressLog()
        self._last_status = 0

    def _touch(self) -> None:
        self._operation_at = asyncio.get_running_loop().time()

    def _new_log(self) -> ProgressLog:
        # If a reader came before start() was called (JupyterHub needs a moment), keep the log that it reads.
        if self._log_of_operation.begun:
            self._log_of_operation = ProgressLog()
        self._log_of_operation.begun = True
        return self._log_of_operation

    # Clients and tokens

    @property
    def _lab(self) -> Lab:
        return Lab(self.user.name, self.name)

    @property
    def _client(self) -> ServiceClient:
        return ServiceClient.shared(
            ClientOptions(
                api_url=self.api_url,
                ca_file=self.api_ca_file,
                connect_timeout=self.connect_timeout,
                request_timeout=self.request_timeout,
                retry_for=self.retry_for,
                silence_timeout=self.silence_timeout,
                max_requests=self.max_requests,
                max_status_requests=self.max_status_requests,
                status_interval=self.status_interval,
            )
        )

    @property
    def _statuses(self) -> StatusCache:
        return StatusCache.shared(self._client, self.token_file or self.token)

    async def _user_token(self) -> str:
        auth_state = await self.user.get_auth_state()
        return (auth_state or {}).get(self.auth_state_token_key) or ""

    def _hub_token(self) -> str:
        return TokenFile.read(self.token_file) if self.token_file else self.token
