"""Fields of the spawn form.

Field("size", "Size", Radio([Choice("small", "Small", "1 CPU, 2 GiB")]), required=True)
Field("debug", "Verbose logs", Checkbox(), help="Slower, but tells more")
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from .user import User


@dataclass
class FormContext:
    """The user for whom the form is, and their server (`""` is the default server)."""

    user: User
    server: str = ""


@dataclass
class Choice:
    """A choice that submits `value` and is shown as `label`, with `description` as a second line."""

    value: str
    label: str
    description: str | None = None


@dataclass
class Choices:
    """What `Select` and `Radio` have in common: one of these choices. The first is selected, unless `default` is the
    value of another."""

    choices: list[Choice]
    default: str | None = None

    def __post_init__(self) -> None:
        if self.default is None and self.choices:
            self.default = self.choices[0].value

    @property
    def value(self) -> Self:
        """This kind of field itself, which the service reads."""
        return self


class Select(Choices):
    """A drop-down list."""


class Radio(Choices):
    """Choices that are all visible."""


@dataclass
class Checkbox:
    """A switch, which is on or off at first."""

    value: bool = False


@dataclass
class Text:
    """A line of text."""

    default: str = ""
    placeholder: str | None = None
    max_length: int | None = None
    """The most characters."""
    pattern: str | None = None
    """A regular expression that the browser checks. The policy has to check it again."""

    @property
    def value(self) -> Self:
        """This kind of field itself, which the service reads."""
        return self


@dataclass
class Number:
    """A number, within a range that includes its ends."""

    default: float
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None

    @property
    def value(self) -> Self:
        """This kind of field itself, which the service reads."""
        return self


Kind = Select | Radio | Checkbox | Text | Number
"""The kinds of fields."""


@dataclass
class Condition:
    """Shows a field only while another field, which comes before it, has one of these values."""

    field: str
    values: list[str]


@dataclass
class Field:
    """One field of the form."""

    name: str
    """The field's key in the options."""
    label: str
    kind: Kind
    help: str | None = None
    group: str | None = None
    """Title of a group. Fields of the same group are shown together below that title."""
    required: bool = False
    visible_when: Condition | None = None


@dataclass
class Html:
    """The policy's own HTML, a fragment inside the Hub's `<form>`. Needs the grant `raw-html`. A policy with such a form
    also overrides `Policy.parse`."""

    value: str


@dataclass
class Fields:
    """Fields that the service renders: accessible, escaped, and in the style of the Hub's page."""

    value: list[Field] = field(default_factory=list)


def fields_of(form: Sequence[Field] | Html) -> list[Field]:
    """The fields of a form; none if the form is the policy's own HTML."""
    return [] if isinstance(form, Html) else list(form)
