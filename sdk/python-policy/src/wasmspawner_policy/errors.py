"""Why a hook returns no answer. A hook raises one of these."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FieldError:
    """An error in one field."""

    field: str
    """A key of the form, or a JSON pointer into the configuration."""
    message: str


@dataclass(frozen=True)
class Denial:
    """Why the user may not do something."""

    message: str
    """Shown to the user."""
    rule: str | None = None
    """One word for the rule of the policy, such as `gpu-hours`, for administrators."""


class PolicyError(Exception):
    """What all errors of this module have in common. Raise one of the others."""


class Denied(PolicyError):
    """The user may not do this. The message is shown to them. `rule` is one word for the rule of the policy, for
    administrators."""

    def __init__(self, message: str, *, rule: str | None = None) -> None:
        super().__init__(message)
        self.value = Denial(message, rule)


class Invalid(PolicyError):
    """The request is invalid, field by field."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors))
        self.value = list(errors)

    @classmethod
    def field(cls, field: str, message: str) -> "Invalid":
        """An error in one field."""
        return cls([FieldError(field, message)])


class RetryLater(PolicyError):
    """The user may try again after this number of seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"try again in {seconds} s")
        self.value = seconds


class Internal(PolicyError):
    """The policy itself failed. The message is logged and never shown to the user. Any exception that is not a
    `PolicyError` counts as this one."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.value = message
