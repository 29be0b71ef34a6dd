"""Where a lab is: as the Hub has noted it, and as the service says."""

from typing import Any

from .web_address import WebAddress


def present_url(server: Any, address: WebAddress | None) -> str:
    """The URL of the Hub's `server` at this address; the Hub's own URL if the service says none."""
    return server.url if address is None else f"{address}{server.base_url}"


def note_move(server: Any, address: WebAddress | None) -> bool:
    """Note in the Hub's `server` that its lab is at this address now; true if that is new.

    A lab in a workload goes on in another pod when its own is gone.
    """
    if address is None or server is None or (server.ip, server.port) == (address.host, address.port):
        return False
    server.ip, server.port = address.host, address.port
    return True
