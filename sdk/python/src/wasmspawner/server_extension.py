"""An extension of the lab's Jupyter server: jupyter-server-proxy may show the dashboards of this lab's Dask pools.

Installing the package enables it. Where jupyter-server-proxy is not installed, it does nothing.
"""

import threading
import time
from collections.abc import Callable, Collection
from importlib.util import find_spec
from typing import Any

from traitlets.config import LazyConfigValue
from traitlets.log import get_logger

from .lab_service import NoService
from .web_address import WebAddress

# A list of pools is used for so long. A dashboard requests something every second.
_FRESH_SECONDS = 5.0
# The Jupyter server waits so long for the service, once per `_FRESH_SECONDS`.
_LONGEST_WAIT_SECONDS = 2.0
_DEFAULT_HOSTS = ("localhost", "127.0.0.1")

Allowlist = Collection[str] | Callable[[Any, str], bool]


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "wasmspawner.server_extension"}]


def _link_jupyter_server_extension(server: Any) -> None:
    """Extend the setting of jupyter-server-proxy. Jupyter links all extensions before it loads the first."""
    if find_spec("jupyter_server_proxy") is None:
        return
    config = server.config.ServerProxy
    # `host_whitelist` is a deprecated name of the setting, which would have precedence.
    former = config.pop("host_whitelist", None)
    configured = config.get("host_allowlist") or former or _DEFAULT_HOSTS
    if isinstance(configured, LazyConfigValue):  # of `c.ServerProxy.host_allowlist.append(...)`
        configured = configured.get_value(list(_DEFAULT_HOSTS))
    config.host_allowlist = with_dashboards(configured, Dashboards(_addresses))


def _load_jupyter_server_extension(server: Any) -> None:
    """Nothing is left to do; Jupyter requires this function."""


class Dashboards:
    """The dashboards of the lab's pools, as pairs of host and port.

    jupyter-server-proxy asks in the server's event loop and cannot wait for an answer. So another thread asks the
    service, and the loop waits only for an address that is not known, for a short time.
    """

    def __init__(self, addresses: Callable[[], set[tuple[str, int]]]) -> None:
        self._addresses = addresses
        self._lock = threading.Lock()
        self._known: set[tuple[str, int]] = set()
        self._asked_at = float("-inf")
        self._answered = threading.Event()

    def __contains__(self, address: tuple[str, int]) -> bool:
        with self._lock:
            stale = time.monotonic() - self._asked_at > _FRESH_SECONDS
            if stale:
                self._asked_at = time.monotonic()
                self._answered = threading.Event()
                threading.Thread(target=self._ask, args=(self._answered,), daemon=True).start()
        if stale and address not in self._known:
            self._answered.wait(_LONGEST_WAIT_SECONDS)
        return address in self._known

    def _ask(self, answered: threading.Event) -> None:
        try:
            self._known = self._addresses()
        except Exception as error:
            # While the service is not reachable, the dashboards that are known stay.
            get_logger().warning("the dashboards of Dask pools are not known: %s", error)
        finally:
            answered.set()


def _addresses() -> set[tuple[str, int]]:
    from .dask.pools import list_pools

    try:
        dashboards = [WebAddress.of_url(pool.dashboard_url) for pool in list_pools() if pool.dashboard_url]
    except NoService:
        return set()
    return {(dashboard.host, dashboard.port) for dashboard in dashboards}


def with_dashboards(configured: Allowlist, dashboards: Collection[Any]) -> Callable[[Any, str], bool]:
    """A setting `host_allowlist` that allows what is configured, and the dashboards."""

    def allows(handler: Any, host: str) -> bool:
        if configured(handler, host) if callable(configured) else host in configured:
            return True
        # The handler's path is `/proxy/HOST:PORT/...`. Other ports of a pool are not for browsers.
        port = handler.path_args[1] if len(handler.path_args) > 1 else ""
        return port.isascii() and port.isdigit() and (host, int(port)) in dashboards

    return allows
