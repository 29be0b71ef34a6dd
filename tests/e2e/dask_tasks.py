"""What workers of Dask compute for the tests. Their pods find this file."""

import hashlib
import os

from distributed import Event

# The longest that a task waits, in seconds.
BOUND = 60


def random_bytes(_) -> bytes:
    """A megabyte that nobody can compute again."""
    return os.urandom(1 << 20)


def digest(data: bytes) -> str:
    """What tells one such megabyte from another."""
    return hashlib.sha256(data).hexdigest()


def wait_for(event: str, result):
    """The result, as soon as the event is set."""
    assert Event(event).wait(BOUND)
    return result
