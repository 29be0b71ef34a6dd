"""A file with a token."""

from pathlib import Path
from typing import ClassVar

from .lab_error import LabError


class TokenFile:
    """A token that may change while the Hub runs: the file is read again when its modification time changes."""

    _known: ClassVar[dict[str, tuple[int, str]]] = {}

    @classmethod
    def read(cls, path: str) -> str:
        """The token. Raises `LabError` (500) if the file cannot be read."""
        try:
            changed = Path(path).stat().st_mtime_ns
            known = cls._known.get(path)
            if known is None or known[0] != changed:
                known = cls._known[path] = (changed, Path(path).read_text().strip())
        except OSError as error:
            message = "JupyterHub has no token for the service."
            raise LabError(500, message, reason="no_token", log_message=str(error)) from error
        return known[1]
