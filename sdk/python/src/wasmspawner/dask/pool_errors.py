"""Errors of Dask pools, with a text for the user."""

from ..errors import Refused, ServiceError
from ..lab_service import token_refused


class PoolError(RuntimeError):
    """The pool could not be started, read or changed."""


class PoolExists(PoolError):
    """There is a pool of that name already."""


class PoolUnknown(PoolError, LookupError):
    """There is no pool of that name."""


class PoolNotAllowed(PermissionError):
    """The site's policy, or a limit, does not allow this."""


def for_user(error: ServiceError, attempt: str) -> Exception:
    """The error that users should see. `attempt` ends a sentence: "start the Dask pool 'big'"."""
    if not isinstance(error, Refused):
        return PoolError(f"Could not {attempt}, because the service cannot be reached: {error}")
    if error.status == 401:
        return PoolNotAllowed(token_refused(error.text))
    if error.status == 403:
        return PoolNotAllowed(error.text or f"Could not {attempt}: the service does not allow that.")
    return PoolError(f"The service did not {attempt}: {error.text or error}")
