"""The end of a pool whose process ends, or whose cluster object nobody has any more."""

import contextlib
import http.client
import os
import weakref
from typing import Any
from urllib.parse import urlsplit

from ..errors import ServiceError
from ..lab import path_segment
from ..lab_service import LabService
from .certificate import forget_certificate
from .pool_api import SENDER

# An interpreter that exits waits no longer than this for the service.
_TIMEOUT = 5.0


def at_end(cluster: Any, service: LabService, name: str, digest: str) -> weakref.finalize:
    """Stop the pool when `cluster` is garbage-collected or the interpreter exits, unless the result is detached.

    `digest` is that of its certificate: a later pool of the same name is not stopped.
    """
    return weakref.finalize(cluster, _stop, service, name, digest, os.getpid())


def _stop(service: LabService, name: str, digest: str, process: int) -> None:
    """Delete the pool with one request, without event loops and threads: at exit, Python starts no threads any more."""
    if os.getpid() != process:
        return  # a fork of the process that has the pool
    url = urlsplit(f"{service.lab_url}/dask-pools/{path_segment(name)}")
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    with contextlib.suppress(OSError, http.client.HTTPException, ServiceError):
        headers = {"Authorization": f"Bearer {service.read_token()}", "X-Requested-With": SENDER}
        headers["If-Match"] = f'"{digest}"'
        with contextlib.closing(kind(url.hostname or "", url.port, timeout=_TIMEOUT)) as connection:
            connection.request("DELETE", url.path, headers=headers)
            if connection.getresponse().status in (202, 204, 404):
                forget_certificate(service.lab, name)
