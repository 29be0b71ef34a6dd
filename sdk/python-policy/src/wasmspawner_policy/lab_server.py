"""How the program in a lab's container is reached."""

from dataclasses import dataclass


@dataclass
class HttpProbe:
    """HTTP GET of this path is answered with a status from 200 to 399. A path that begins with `/` is complete; any other
    is relative to the lab's base URL, which is in `JUPYTERHUB_SERVICE_PREFIX`."""

    value: str


@dataclass
class TcpProbe:
    """The port accepts connections."""


@dataclass
class NoProbe:
    """The container runs. JupyterHub may then send users to a lab that does not answer yet."""


@dataclass
class Settings:
    """Port and probe. What is absent is as the service's configuration says."""

    port: int | None = None
    """1 to 65535. Needs the grant `ports: [port]`."""
    probe: HttpProbe | TcpProbe | NoProbe | None = None
