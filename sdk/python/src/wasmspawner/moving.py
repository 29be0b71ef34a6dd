"""The spawner class of a Hub whose users move from another spawner, one group after the other:
`c.JupyterHub.spawner_class = "wasmspawner.moving.MovingSpawner"`."""

from typing import Any

from jupyterhub.orm import Spawner as Server
from jupyterhub.spawner import Spawner
from jupyterhub.user import User
from traitlets import Set, Type, Unicode, default
from traitlets.config import Config, Configurable
from traitlets.utils.importstring import import_item

from .spawner import WasmSpawner


class MovingSpawner(WasmSpawner):
    """Makes a `WasmSpawner` for servers that have moved, and the former spawner for all others.

    JupyterHub makes a spawner whenever a server is about to start, and for those that run when the Hub starts. A server that runs
    keeps its spawner until it stops.
    """

    former_class = Type(
        klass=Spawner,
        config=True,
        help="""The spawner of servers that have not moved. Default: `kubespawner.KubeSpawner`.""",
    )

    @default("former_class")
    def _kubespawner(self) -> type[Spawner]:
        return import_item("kubespawner.KubeSpawner")

    groups = Set(Unicode(), config=True, help="""Groups of JupyterHub whose users have moved.""")

    server_names = Set(
        Unicode(),
        config=True,
        help="""Names of servers that have moved, whoever's they are. Empty: the default server.""",
    )

    def __new__(cls, *args: Any, **kwargs: Any) -> Spawner:
        """The spawner of a server."""
        # Python does not call `__init__` of an object of another class.
        settings = super().__new__(cls, *args, **kwargs)
        Configurable.__init__(settings, config=kwargs.get("config") or Config())
        user, server = kwargs.get("user"), kwargs.get("orm_spawner")
        chosen = WasmSpawner if settings._has_moved(user, server) else settings.former_class
        return chosen(*args, **kwargs)

    def _has_moved(self, user: User | None, server: Server | None) -> bool:
        if server is None:
            return False
        # A `WasmSpawner` has this in its state from the request for a lab until it has stopped.
        if "user" in (server.state or {}):
            return True
        if server.server is not None:
            return False
        groups = {group.name for group in user.groups} if user else set()
        return server.name in self.server_names or bool(groups & self.groups)
