"""The name of a lab."""

from dataclasses import dataclass
from urllib.parse import quote


def _segment(name: str) -> str:
    """A name as one path segment; `.` and `..` too, which `quote` leaves alone and proxies resolve."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


@dataclass(frozen=True, slots=True)
class Lab:
    """Which lab: a user's default server (`server` is "") or one of their named ones."""

    user: str
    server: str = ""

    def __str__(self) -> str:
        return f"{self.user}:{self.server}" if self.server else self.user

    @property
    def path(self) -> str:
        """The lab's resource, below the API's base."""
        path = f"/labs/{_segment(self.user)}"
        return f"{path}/servers/{_segment(self.server)}" if self.server else path

    @property
    def form_path(self) -> str:
        """The user's spawn form, below the API's base."""
        return f"/spawn-form/{_segment(self.user)}"
