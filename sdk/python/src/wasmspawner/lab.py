"""The name of a lab."""

from dataclasses import dataclass
from urllib.parse import quote


def path_segment(name: str) -> str:
    """A name as one path segment. Also quotes `.` and `..`, which `quote` leaves unchanged and proxies resolve."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


@dataclass(frozen=True, slots=True)
class Lab:
    """Identifies a lab: a user's default server (`server` is "") or one of their named servers."""

    user: str
    server: str = ""

    def __str__(self) -> str:
        return f"{self.user}:{self.server}" if self.server else self.user

    @property
    def path(self) -> str:
        """The path of the lab, relative to the API's base URL."""
        return self._below("/labs")

    @property
    def form_path(self) -> str:
        """The path of the lab's spawn form, relative to the API's base URL."""
        return self._below("/spawn-form")

    def _below(self, folder: str) -> str:
        path = f"{folder}/{path_segment(self.user)}"
        return f"{path}/servers/{path_segment(self.server)}" if self.server else path
