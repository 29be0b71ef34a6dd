"""The cluster class of Dask for pools of workers that the service runs beside a lab."""

import asyncio
import contextlib
import html
import os
import secrets
from collections.abc import Generator, Mapping
from typing import Any
from urllib.parse import urlsplit

from distributed.core import Status, rpc
from distributed.deploy import Cluster
from distributed.security import Security
from distributed.utils import NoOpAwaitable
from tornado.ioloop import IOLoop, PeriodicCallback

from ..errors import ServiceError
from ..lab_service import LabService
from ..retries import patiently
from .certificate import Certificate, certificate_file, forget_certificate
from .pool_api import OUTAGE, PoolApi
from .pool_end import at_end
from .pool_errors import PoolError, PoolUnknown, for_user
from .pool_size import pool_size, pool_workers
from .pool_start import PoolStart, delete_pool
from .pool_state import PoolState
from .pools import unknown

_REFRESH_MILLISECONDS = 5000


class WasmSpawnerCluster(Cluster):
    """A Dask cluster whose scheduler and workers run in pods beside the lab.

    The service starts and deletes the pods, under the site's policy and the user's limits. With `minimum` and
    `maximum` the scheduler decides how many workers there are; otherwise there are `n_workers` (0 by default), until
    `scale` or `adapt` changes that.

    `groups` are groups of workers in place of all these numbers: a mapping of names to `worker_group(...)`, each with its own number and
    `options`, such as a size with GPUs. Tasks ask for a group by its name as a resource, as in
    `dask.annotate(resources={"gpu": 1})`; a task without one may run in any group, and counts for the first.
    `scheduler_options` are the `options` in which the scheduler differs from the workers.

    Parameters: `name` (random by default), `options` for the site's policy, such as `image` and `size`, `env` for the
    variables of scheduler and workers, `idle_timeout` in seconds after which a pool without work ends, `outlive_lab`
    for a pool that stays when the lab stops, `shutdown_on_close` to stop the pool when this object is closed or its
    process ends (by default, unless the pool is to outlive the lab), and `timeout` in seconds for the scheduler's start. The others are those of Dask's own clusters.

    Raises `PermissionError` with the policy's words if it refuses, and `PoolError` (a `RuntimeError`) with stage and
    reason if the scheduler does not start.
    """

    def __init__(
        self,
        name: str | None = None,
        n_workers: int | None = None,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        groups: Mapping[str, Mapping[str, Any]] | None = None,
        options: Mapping[str, Any] | None = None,
        scheduler_options: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        idle_timeout: int | None = None,
        outlive_lab: bool = False,
        shutdown_on_close: bool | None = None,
        asynchronous: bool = False,
        loop: IOLoop | None = None,
        timeout: float = 600.0,
        quiet: bool = False,
        _exists: bool = False,
    ) -> None:
        # What Dask's representation and `__del__` need, also if the rest fails.
        self._pool: PoolState | None = None
        self._finalizer: Any = None
        self._digest = ""
        self._created = False  # true as long as there is a pool that this object has created
        self._starting: asyncio.Task[Any] | None = None
        self.status = Status.closed
        self.shutdown_on_close = not outlive_lab if shutdown_on_close is None else shutdown_on_close
        self.security: Security | None = None
        self._timeout = timeout
        self._exists = _exists
        self._service = LabService.of_environment()
        self._api = PoolApi(self._service)
        self._request = {
            **pool_workers(groups, n_workers, minimum, maximum),
            **({"scheduler": {"options": dict(scheduler_options)}} if scheduler_options else {}),
            "options": dict(options or {}),
            "env": dict(env or {}),
            "idle_timeout": idle_timeout,
            "outlive_lab": outlive_lab,
        }
        name = name or f"pool-{secrets.token_hex(3)}"
        super().__init__(asynchronous=asynchronous, loop=loop, quiet=quiet, name=name)
        if not asynchronous:
            self._loop_runner.start()
            try:
                self.sync(self._start)
            except BaseException:
                with contextlib.suppress(Exception):
                    self.close(shutdown=False, timeout=10)
                self._loop_runner.stop()
                raise

    @classmethod
    def from_name(cls, name: str, **kwargs: Any) -> "WasmSpawnerCluster":
        """Connect to a pool that runs already, such as one of another notebook. It stays when this object is closed,
        unless `shutdown_on_close=True` is given."""
        return cls(name, _exists=True, **{"shutdown_on_close": False, **kwargs})

    # Start

    def __await__(self) -> Generator[Any, None, "WasmSpawnerCluster"]:
        async def started() -> "WasmSpawnerCluster":
            if self.status == Status.created:
                await self._start()
            return self

        return started().__await__()

    async def _start(self) -> None:
        self.status = Status.starting
        self._starting = asyncio.current_task()
        start = PoolStart(self._api, self.name, self._timeout, self._log)
        try:
            if self._exists:
                certificate = await self._find(start)
            else:
                certificate = await self._create(start)
            self.security = _security(certificate)
            arguments = self.security.get_connection_args("client")
            self.scheduler_comm = rpc(self._pool.scheduler_address, connection_args=arguments)
            await self._connect()
        except BaseException:
            if self._created:
                await self._shut_down()
            await super()._close()
            raise
        finally:
            self._starting = None
        refresh = PeriodicCallback(self._refresh, _REFRESH_MILLISECONDS)
        self.periodic_callbacks["pool"] = refresh
        refresh.start()

    async def _connect(self) -> None:
        try:
            await super()._start()
        except OSError as error:
            address = self._pool.scheduler_address
            hint = "; the certificate here may be that of a former pool of this name" if self._exists else ""
            raise PoolError(
                f"The scheduler of the Dask pool '{self.name}' at {address} cannot be reached: {error}{hint}"
            ) from error
        if not self._pool.maximum:
            self._log("The pool has no workers yet: cluster.scale(2) or cluster.adapt(maximum=8) adds some.")

    async def _create(self, start: PoolStart) -> Certificate:
        certificate = Certificate.new()

        def on_created() -> None:
            try:
                certificate.save(self._service.lab, self.name)
            except OSError as error:
                self._log(f"The certificate of the pool cannot be kept, so only this process can use it: {error}")
            self._created = True
            self._stop_at_end(certificate)

        try:
            self._pool = await start.create(self._request, certificate, on_created)
        except BaseException:
            if self._created:  # it was deleted
                self._forget()
            raise
        return certificate

    async def _find(self, start: PoolStart) -> Certificate:
        try:
            self._pool = await start.wait()
        except PoolUnknown:
            forget_certificate(self._service.lab, self.name)
            raise
        try:
            certificate = Certificate.load(self._service.lab, self.name)
        except (OSError, ValueError) as error:
            file = certificate_file(self._service.lab, self.name)
            raise PoolError(
                f"The certificate of the Dask pool '{self.name}' is not in {file}, and without it nobody can connect. "
                "Copy the file from where the pool was started, or stop the pool with "
                f"stop_pool('{self.name}') and start another one."
            ) from error
        self._stop_at_end(certificate)
        return certificate

    def _stop_at_end(self, certificate: Certificate) -> None:
        self._digest = certificate.digest
        if self.shutdown_on_close:
            self._finalizer = at_end(self, self._service, self.name, self._digest)

    # Scale

    def scale(self, n: int, *, group: str = "") -> Any:
        """Have `n` workers, in a group of the pool if it has groups. Workers that are too many give their data to others
        before they end."""
        return self.sync(self._scale, pool_size(n, None, None), group)

    def adapt(self, minimum: int = 0, maximum: int | None = None, *, group: str = "") -> Any:
        """Let the scheduler decide how many workers there are, between these bounds, in a group of the pool if it has
        groups."""
        if maximum is None:
            raise ValueError("adapt() needs the largest number of workers: adapt(minimum=0, maximum=8)")
        return self.sync(self._scale, pool_size(None, minimum, maximum), group)

    async def _scale(self, workers: int | dict[str, int], group: str) -> None:
        try:
            pool = await patiently(lambda: self._api.scale(self.name, workers, group), OUTAGE)
        except ServiceError as error:
            raise for_user(error, f"scale the Dask pool '{self.name}'") from error
        if pool is None:
            raise PoolUnknown(unknown(self.name))
        self._pool = pool
        if pool.note:
            self._log(pool.note)

    async def _wait_for_workers(self, n_workers: int = 0, timeout: Any = None) -> None:  # noqa: ASYNC109 - Dask's
        try:
            await super()._wait_for_workers(n_workers, timeout)
        except TimeoutError as error:
            await self._refresh()
            if self._pool is not None and self._pool.workers_message:
                error.add_note(self._pool.workers_message)
            raise

    # The running pool

    async def _refresh(self) -> None:
        """Read the pool's state. While the service is not reachable, the last one stands."""
        try:
            pool = await self._api.get(self.name)
        except ServiceError:
            return
        if self.status != Status.running:
            return
        if pool is None or pool.status == "failed":
            self._log(unknown(self.name) if pool is None else f"The Dask pool '{self.name}' has failed: {pool.why}")
            self._forget()
            self.status = Status.failed
        else:
            self._pool = pool

    @property
    def pool(self) -> PoolState | None:
        """What the service has said about the pool most recently."""
        return self._pool

    @property
    def dashboard_link(self) -> str:
        """The address of the dashboard: in a lab, through the lab's own server (jupyter-server-proxy)."""
        url = self._pool.dashboard_url if self._pool else ""
        prefix = os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "")
        if url and prefix:
            return f"{prefix.rstrip('/')}/proxy/{urlsplit(url).netloc}/status"
        return f"{url.rstrip('/')}/status" if url else ""

    @property
    def plan(self) -> set[str]:
        """The names of the workers. Only the service knows those that are still starting."""
        return self.observed

    requested = plan

    def _scaling_status(self) -> str:
        if self._pool is None:
            return ""
        mode = f"Adaptive, {self._pool.scaling} workers" if self._pool.adaptive else "Manual"
        groups = [f"Group {group.name}: {group.ready} of {group.scaling} workers" for group in self._pool.groups]
        workers = len(self.scheduler_info["workers"])
        count = str(workers) if workers == self._pool.desired else f"{workers} / {self._pool.desired}"
        lines = [f"Scaling mode: {mode}", f"Workers: {count}", *map(html.escape, groups)]
        lines.append(html.escape(self._pool.workers_message))
        cells = "".join(f'<tr><td style="text-align: left;">{line}</td></tr>' for line in lines if line)
        return f"<table>{cells}</table>"

    def _repr_html_(self, cluster_status: str | None = None) -> str:
        if cluster_status is None and self._pool is not None:
            cluster_status = f'<tr><td style="text-align: left;" colspan="2">{self._scaling_status()}</td></tr>'
        return super()._repr_html_(cluster_status=cluster_status)

    # End

    def close(self, shutdown: bool | None = None, timeout: float | None = None) -> Any:
        """Disconnect, and stop the pool if `shutdown` is true. By default, `shutdown_on_close` decides."""
        if self.status == Status.closed:
            return NoOpAwaitable() if self.asynchronous else None
        if self.asynchronous:
            return self.sync(self._close, shutdown, callback_timeout=timeout)
        with contextlib.suppress(RuntimeError):  # the event loop is closed while the interpreter exits
            self.sync(self._close, shutdown, callback_timeout=timeout)
        self._loop_runner.stop()
        return None

    async def _close(self, shutdown: bool | None = None) -> None:
        if self.status == Status.closed:
            return
        if self._starting is not None and self._starting is not asyncio.current_task():
            # The start was interrupted in another thread. It deletes what it has begun.
            starting = self._starting
            starting.cancel()
            await asyncio.wait([starting])
        gone = self.status in (Status.failed, Status.created)
        await super()._close()
        if gone:
            return
        if self.shutdown_on_close if shutdown is None else shutdown:
            await self._shut_down()
        elif self._finalizer is not None:
            self._finalizer.detach()

    async def _shut_down(self) -> None:
        if trouble := await delete_pool(self._api, self.name, self._digest):
            until = "it is idle" if self._request["outlive_lab"] else "its lab ends"
            self._log(f"The Dask pool '{self.name}' was not stopped and runs on until {until}: {trouble}")
            return
        self._forget()

    def _forget(self) -> None:
        """The pool is gone: nothing is left to stop, or to connect to."""
        self._created = False
        forget_certificate(self._service.lab, self.name)
        if self._finalizer is not None:
            self._finalizer.detach()


def _security(certificate: Certificate) -> Security:
    """All parties of a pool have the same certificate, which is its own authority."""
    return Security(
        require_encryption=True,
        tls_ca_file=certificate.certificate,
        tls_client_cert=certificate.certificate,
        tls_client_key=certificate.key,
    )
