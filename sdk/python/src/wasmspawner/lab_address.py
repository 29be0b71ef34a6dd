"""Where a lab is: as the Hub has noted it, and as the service says."""

from typing import Any
from urllib.parse import urlsplit


def present_url(server: Any, url: str) -> str:
    """The URL of the Hub's `server`, at the address in the `url` of the service; the Hub's own if that says nothing new."""
    ours, theirs = urlsplit(server.url), urlsplit(url)
    if not url or (ours.scheme, ours.hostname, ours.port) == (theirs.scheme, theirs.hostname, theirs.port):
        return server.url
    return f"{theirs.scheme}://{theirs.netloc}{server.base_url}"


def note_move(server: Any, url: str) -> bool:
    """Note in the Hub's `server` that its lab is at the address in `url` now; true if that is new.

    A lab in a workload goes on in another pod when its own is gone.
    """
    theirs = urlsplit(url)
    if not url or server is None or not theirs.hostname or theirs.port is None:
        return False
    if (server.ip, server.port) == (theirs.hostname, theirs.port):
        return False
    server.ip, server.port = theirs.hostname, theirs.port
    return True
