"""Whether a user may perform an action."""

from dataclasses import dataclass, field
from enum import Enum

from .errors import Denial
from .options import Options
from .user import User


class Action(Enum):
    """What the user wants to do."""

    SPAWN = 0
    STOP = 1
    START_KERNEL = 2
    DASK_POOL = 3
    SCALE = 4


@dataclass
class AuthorizeRequest:
    """The action that is to be decided."""

    action: Action
    user: User
    server: str = ""
    options: Options = field(default_factory=dict)
    """The parsed options of a spawn; empty for other actions."""


@dataclass
class Allow:
    """The policy allows it."""


@dataclass
class Deny:
    """The policy denies it."""

    message: str
    """Shown to the user."""
    rule: str | None = None
    """One word for the rule of the policy, such as `gpu-hours`, for administrators."""

    @property
    def value(self) -> Denial:
        """The denial in the form of the contract."""
        return Denial(self.message, self.rule)


Verdict = Allow | Deny
"""What `Policy.authorize` returns."""
