"""The spawner class that JupyterHub loads: `c.JupyterHub.spawner_class = "wasmspawner"`."""

import asyncio
import math
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import urlsplit

from jupyterhub.spawner import Spawner
from sqlalchemy import inspect
from traitlets import Float, Integer, TraitError, Unicode, default, observe, validate

from .client import ClientOptions, ServiceClient
from .errors import LoginExpired, Refused, ServiceError, Unreachable
from .lab import Lab
from .lab_address import note_move, present_url
from .lab_error import LabError, for_user
from .lab_state import INTERRUPTED, LabState
from .lab_stop import LabStop
from .options import form_fields, options_from_form, without_own_fields
from .progress import ProgressEvent, ProgressLog
from .retries import Retries
from .spawn_request import SpawnRequest
from .status_cache import StatusCache
from .token_file import TokenFile
from .unused_settings import INTERNAL_SSL, warn_once
from .web_address import WebAddress

# The options of the client that are set by traits of the spawner.
_OF_CLIENT = {
    "api_url": "api_url",
    "ca_file": "api_ca_file",
    "connect_timeout": "connect_timeout",
    "request_timeout": "request_timeout",
    "retry_for": "retry_for",
    "silence_timeout": "silence_timeout",
    "max_requests": "max_requests",
    "max_status_requests": "max_status_requests",
    "status_interval": "status_interval",
}


# The state of KubeSpawner from which it learns which claim a server has. It is kept for whoever goes back.
_KEPT_OF_KUBESPAWNER = ("pvc_name", "kubespawner_version")


class WasmSpawner(Spawner):
    """Starts a user's lab by requesting it from the wasmspawner service.

    The service decides on images, sizes, quotas and volumes. `unused_settings.py` has the settings that are therefore not
    used.
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

    @default("options_from_form")
    def _options_from_form_default(self) -> Any:
        return options_from_form

    def __init__(self, **kwargs: Any) -> None:
        self._log_of_operation = ProgressLog()
        self._starting = False
        # When the last start or stop began or ended.
        self._operation_at = -math.inf
        # The last result of poll(). A spawner that was neither started nor loaded has no lab.
        self._last_status: int | None = 0
        self._of_kubespawner: dict[str, Any] = {}
        # The options of the last start that the service accepted.
        self._last_options: dict[str, Any] = {}
        # The lab of this server while it has one. The user may be renamed meanwhile.
        self._own_lab: Lab | None = None
        self._shared: tuple[ServiceClient, StatusCache] | None = None
        super().__init__(**kwargs)
        warn_once(type(self), self.config)

    # The spawn form

    @staticmethod
    async def _fetch_options_form(spawner: "WasmSpawner") -> str:
        try:
            form = await spawner._form()
        except ServiceError as error:
            raise for_user(error, f"fetching the spawn form of {spawner._log_name}") from error
        return form if form.strip() else ""

    async def _form(self) -> str:
        login = await self._login_token()
        try:
            return await self._client.spawn_form(self._lab, login or self._hub_token(), self._last_options)
        except Refused as error:
            if login and error.status == 401:
                raise LoginExpired(str(error)) from error
            raise

    # The lab

    def start(self) -> Coroutine[Any, Any, str]:
        """Start the lab, wait until it answers and return its URL."""
        self._own_lab = Lab(self.user.name, self.name)
        # The Hub commits this when the function has returned. If it ends in mid-spawn, it finds the lab again.
        if self.orm_spawner is not None:
            self.orm_spawner.state = self.get_state()
        return self._start()

    async def _start(self) -> str:
        log = self._new_log()
        self._starting = True
        self._last_status = None
        self._touch()
        try:
            request = await self._spawn_request()
            await self._submit(request, log)
            self._last_options = dict(request.options)
            reason = await self._follow_to_end(log)
            if reason == INTERRUPTED and self._log_of_operation is log:
                # The user need not start the lab again because the service restarted.
                await log.go_on("The service that starts labs was restarted. Starting your lab again.")
                await request.submit()
                await self._follow(log)
            if log.failed:
                raise LabError(500, log.failure, reason=reason or "failed")
            return await self._running_url(log)
        except ServiceError as error:
            raise for_user(error, f"starting the lab of {self._log_name}") from error
        finally:
            self._starting = False
            self._touch()
            await log.end()

    async def _spawn_request(self) -> SpawnRequest:
        login = await self._login_token()
        return SpawnRequest(
            self._client,
            self._lab,
            login or self.api_token,
            without_own_fields(self.user_options),
            {key: str(value) for key, value in self.get_env().items() if value is not None},
            login=bool(login),
            hub_token=self._hub_token,
            stop_timeout=self.stop_timeout,
        )

    async def _submit(self, request: SpawnRequest, log: ProgressLog) -> None:
        try:
            await request.submit()
            return
        except Refused as error:
            unknown = await self._unknown_in_query(error)
            if not unknown:
                raise
            names = ", ".join(unknown)
        self.log.warning("Options in the link that started the lab of %s are not known: %s", self._log_name, names)
        request.options = {key: value for key, value in request.options.items() if key not in unknown}
        # The Hub would use them again for the next start.
        self.user_options = dict(request.options)
        if self.orm_spawner is not None:
            self.orm_spawner.user_options = self.user_options
        await request.submit()
        await log.show(f"Unknown options were ignored: {names}")

    async def _unknown_in_query(self, error: Refused) -> list[str]:
        """The refused options that are in the link with which the user started the lab, and in no field of the form."""
        asked = getattr(self.handler, "request", None)
        if error.status != 422 or asked is None or asked.method != "GET":
            return []
        refused = {location for location, _ in error.problems}.intersection(asked.query_arguments)
        if not refused:
            return []
        try:
            return sorted(refused - form_fields(await self._form()))
        except ServiceError:
            return []  # show what was refused

    async def _follow_to_end(self, log: ProgressLog) -> str:
        """Follow the spawn to its end. Returns the reason why it failed, if it did and that is known."""
        try:
            await self._follow(log)
        except Refused as error:
            if not error.no_lab:
                raise
            return INTERRUPTED  # the service has lost even the record of the accepted spawn
        if not log.failed:
            return ""
        try:
            lab = await self._client.lab(self._lab, self._hub_token())
        except ServiceError:
            return ""  # show why the spawn failed, not why the lab could not be read
        return lab.reason if lab is not None and lab.status == "failed" else ""

    async def _running_url(self, log: ProgressLog) -> str:
        with suppress(ValueError):
            return str(WebAddress.of_url(log.url))
        lab = await self._client.lab(self._lab, self._hub_token())
        if lab is None or lab.status != "running" or lab.address is None:
            # Another caller stopped the lab in the meantime; the events are those of that stop.
            message = (lab and lab.message) or "The lab was stopped before it was ready."
            raise LabError(500, message, reason="stopped")
        return str(lab.address)

    async def create_certs(self) -> None:
        """Refuse `c.JupyterHub.internal_ssl`, with which the Hub calls this before a start."""
        raise LabError(500, INTERNAL_SSL, reason="internal_ssl")

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

    async def rename(self, old_name: str, new_name: str) -> None:
        """Refuse to rename a server that has volumes. They are found by its name, so that it would start without them."""
        lab = Lab(self.user.name, old_name)
        try:
            volumes = await self._client.volumes(lab, self._hub_token())
        except ServiceError as error:
            raise for_user(error, f"renaming the server {lab}") from error
        if volumes:
            raise LabError(
                409,
                f"This server cannot be renamed, because its volumes ({', '.join(volumes)}) belong to its name. Change its "
                "display name, or make a new server and copy the files.",
                reason="server_has_volumes",
            )

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
        """None while there is a lab (starting, running, terminating), 0 if there is none. For a failed lab, the exit code of
        its program, or 1.

        Only an answer of the service changes the result. While the service is not reachable, restarts or refuses the
        Hub's token, the last result is repeated: labs survive the service, and the Hub would otherwise stop all of
        them.
        """
        if self._starting:
            return None  # between start() and its acceptance there is no lab yet
        operation_at = self._operation_at
        lab = await self._statuses.state(self._lab, self._hub_token, since=operation_at)
        # An answer to a request from before a start or a stop is not used afterwards.
        if lab is not None and lab.alive is not None and operation_at == self._operation_at:
            self._last_status = None if lab.alive else lab.exit_status
            if lab.status == "running" and note_move(self.server, lab.address):
                self.log.info("The lab of %s goes on at %s; the proxy follows soon", self._log_name, self.server.ip)
                inspect(self.orm_spawner).session.commit()
        return None if self._starting else self._last_status

    async def get_url(self) -> str:
        """The URL of a lab that has been running since before this Hub started; waits for a lab that is still
        starting."""
        address = self._statuses.listed_address(self._lab)
        if address is None:
            try:
                lab = await self._present_lab()
                address = lab.address if lab is not None else None
            except (ServiceError, LabError) as error:
                self.log.warning("The address of the lab of %s is unknown: %s", self._log_name, error)
        return present_url(self.server, address)

    async def _present_lab(self) -> LabState | None:
        # The Hub ended while it was starting the lab. Without an address it would stop the lab now.
        has_no_address = not self.server.ip
        retries = Retries(self.start_timeout, longest=5.0)
        while True:
            try:
                lab = await self._client.lab(self._lab, self._hub_token())
                if lab is None or lab.status != "starting":
                    return lab
                self._log_of_operation = log = ProgressLog()
                log.begun = True
                try:
                    await self._follow(log)
                finally:
                    await log.end()
                return await self._client.lab(self._lab, self._hub_token())
            except Unreachable as error:
                if not has_no_address:
                    raise
                await retries.pause(error)

    async def progress(self) -> AsyncIterator[ProgressEvent]:
        """The events of the start or stop under way, from the first, until it has ended."""
        async for event in self._log_of_operation.follow():
            yield event

    # State

    def get_state(self) -> dict[str, Any]:
        """The options of the last start that the service accepted, the name of the lab, while there is one, and what KubeSpawner
        needs to find the server's claim again."""
        state = super().get_state() | self._of_kubespawner
        if self._last_options:
            state["last_options"] = self._last_options
        if self._own_lab is not None:
            state |= {"user": self._own_lab.user, "server": self._own_lab.server}
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        super().load_state(state)
        self._last_options = state.get("last_options") or {}
        self._of_kubespawner = {key: state[key] for key in _KEPT_OF_KUBESPAWNER if key in state}
        if "user" in state:
            self._own_lab = Lab(state["user"], state["server"])
            # Until the service answers: the Hub stores this state before a lab is requested, and removes it after a stop.
            self._last_status = None

    def clear_state(self) -> None:
        """Discard the last operation, but not its options, with which the next form begins, and not the name of a lab that
        could not be stopped."""
        super().clear_state()
        self._log_of_operation = ProgressLog()
        if self._last_status is not None:
            self._own_lab = None
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
        return self._own_lab or Lab(self.user.name, self.name)

    @property
    def _client(self) -> ServiceClient:
        return self._shared_objects()[0]

    @property
    def _statuses(self) -> StatusCache:
        return self._shared_objects()[1]

    @observe(*_OF_CLIENT.values(), "token", "token_file")
    def _forget_shared_objects(self, _: Any) -> None:
        self._shared = None

    def _shared_objects(self) -> tuple[ServiceClient, StatusCache]:
        # Made once, because each of thousands of spawners is polled every few seconds.
        if self._shared is None:
            options = ClientOptions(**{option: getattr(self, trait) for option, trait in _OF_CLIENT.items()})
            client = ServiceClient.shared(options)
            self._shared = client, StatusCache.shared(client, self.token_file or self.token)
        return self._shared

    async def _login_token(self) -> str:
        """The user's own token for the service, if the authenticator has stored one."""
        auth_state = await self.user.get_auth_state()
        return (auth_state or {}).get(self.auth_state_token_key) or ""

    def _hub_token(self) -> str:
        return TokenFile.read(self.token_file) if self.token_file else self.token
