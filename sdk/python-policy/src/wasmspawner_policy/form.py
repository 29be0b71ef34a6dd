"""Fields of the spawn form.

Field("size", "Size", Radio([Choice("small", "Small", "1 CPU, 2 GiB")]), required=True)
Field("debug", "Verbose logs", Checkbox(), help="Slower, but tells more")
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from . import pattern
from .errors import Internal
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
    """A regular expression for the whole text. It may have what `wit/README.md` lists, and says nothing about an empty text."""

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
    """The distance between allowed numbers, which begin at the minimum, or else at the default. Any number if absent."""

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
    """Whether it must have a value: a choice, a text that is not empty, a checkbox that is checked. A number always has one."""
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


def checked(fields: Sequence[Field]) -> list[Field]:
    """These fields. Raises `Internal` if submissions cannot be held to all that one of them says."""
    for one in fields:
        if problem := problem_of(one):
            raise Internal(f"the form's field {one.name} cannot be checked: {problem}")
    return list(fields)


def problem_of(one: Field) -> str | None:
    """The part of a field to which submissions cannot be held, and why."""
    if isinstance(one.kind, Text) and one.kind.pattern is not None:
        try:
            pattern.check(one.kind.pattern)
        except pattern.PatternError as error:
            return f"pattern: {error}"
    return _problem_of_number(one.kind) if isinstance(one.kind, Number) else None


def _problem_of_number(kind: Number) -> str | None:
    for part, number in (("default", kind.default), ("minimum", kind.minimum), ("maximum", kind.maximum)):
        if number is not None and not math.isfinite(number):
            return f"{part}: must be a finite number"
    if kind.step is not None and not (math.isfinite(kind.step) and kind.step > 0):
        return "step: must be a number above 0"
    if kind.minimum is not None and kind.maximum is not None and kind.minimum > kind.maximum:
        return "minimum: must not be above the maximum"
    return None
