"""The user, as the service's identity provider describes them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass
class Group:
    """A group of a user. A group without a GID exists by name only."""

    name: str
    gid: int | None = None


@dataclass
class UserQuota:
    """What the identity provider allows a user. The service enforces it, whatever the policies answer. An absent limit
    does not limit."""

    cpu_millis: int | None = None
    """CPU in thousandths of a CPU."""
    memory_bytes: int | None = None
    spawn: bool = True
    """Whether the user may start labs at all."""


@dataclass
class User:
    """A user of the Hub."""

    name: str
    uid: int | None = None
    gid: int | None = None
    """Number of the primary group."""
    groups: list[Group] = field(default_factory=list)
    email: str | None = None
    display_name: str | None = None
    quota: UserQuota | None = None
    """Absent where the identity provider has no quotas."""

    def in_group(self, name: str, gid: int | None = None) -> "User":
        """This user as a member of a further group, for tests."""
        return replace(self, groups=[*self.groups, Group(name, gid)])

    def is_in(self, group: str) -> bool:
        """True if the user is in the group of this name."""
        return any(one.name == group for one in self.groups)

    def is_in_any(self, groups: Iterable[str]) -> bool:
        """True if the user is in one of these groups."""
        return any(self.is_in(group) for group in groups)
