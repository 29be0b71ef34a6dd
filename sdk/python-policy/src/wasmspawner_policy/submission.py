"""Checks a submission against the fields of a form."""

import math
import re
from collections.abc import Sequence

from . import host, pattern
from .errors import FieldError, Invalid
from .form import Checkbox, Choices, Field, Number, Select, Text, problem_of
from .options import Options, Value

_SHOWN = 64
"""The most characters of a submitted text that a message repeats."""
_LISTED = 10
"""The most choices that a message lists."""
_MAX_WHOLE = 2**53 - 1
"""The largest whole number up to which all are exact in JavaScript, too."""
_NOT_PLAIN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
"""Control characters and breaks of lines, which could hide what is beside them."""
_NUMBER = re.compile(r"-?(\d+|\d*\.\d+)([eE][-+]?\d+)?", re.ASCII)
"""A number in the syntax of HTML (\"valid floating-point number\"), which is what browsers submit."""


class Problem(Exception):
    """What is wrong with the value of one field."""


def check(fields: Sequence[Field], submission: Options) -> Options:
    """The submission as complete options: every visible field, with its default if it was not submitted. Texts are
    converted to the type of their field, because browsers submit only texts.

    Raises `Invalid` with all fields that are wrong, and all keys that are not fields.
    """
    options: Options = {}
    errors: list[FieldError] = []
    for field in fields:
        if not _visible(field, options):
            continue
        try:
            value = _value(field, submission.get(field.name))
        except Problem as problem:
            errors.append(FieldError(field.name, str(problem)))
            continue
        if value is not None:
            options[field.name] = value
    known = {field.name for field in fields}
    errors += [
        FieldError(name, "is not a field of this form; leave it out") for name in sorted(submission.keys() - known)
    ]
    if errors:
        raise Invalid(errors)
    return options


def _visible(field: Field, options: Options) -> bool:
    condition = field.visible_when
    if condition is None:
        return True
    value = options.get(condition.field)
    return value is not None and _text_of(value) in condition.values


def _value(field: Field, submitted: Value | None) -> Value | None:
    """The value of a field: what was submitted or else its default, held to all that the field says. `None` if it has none."""
    if problem := problem_of(field):
        host.error(f"the form's field {field.name} cannot be checked: {problem}")
        raise Problem(f"{field.label} cannot be checked now: tell the operators of this site")
    kind = field.kind
    if isinstance(kind, Choices):
        return _choice(field, kind, submitted)
    if isinstance(kind, Checkbox):
        return _checkbox(field, kind, submitted)
    if isinstance(kind, Text):
        return _text(field, kind, submitted)
    return _number(field, kind, submitted)


def _refused(field: Field, value: Value, remedy: str) -> Problem:
    """What is wrong with a value, and what to do."""
    return Problem(f"{field.label} cannot be {_shown(value)}: {remedy}")


def _shown(value: Value) -> str:
    """A value in a message: a long text is cut, and one with line breaks stays in its line."""
    if not isinstance(value, str):
        return _text_of(value)
    return f'"{_NOT_PLAIN.sub(chr(0xFFFD), value[:_SHOWN])}{"…" if len(value) > _SHOWN else ""}"'


def _choice(field: Field, kind: Choices, submitted: Value | None) -> str | None:
    values = [choice.value for choice in kind.choices]
    # The first choice of a required list asks for one if its value is empty, as in HTML.
    asks = field.required and isinstance(kind, Select) and values[:1] == [""]
    offered = values[1:] if asks else values
    chosen = kind.default if submitted is None else _text_of(submitted)
    if chosen in offered:
        return chosen
    if chosen is None and not field.required:
        return None
    listed = ", ".join(offered if len(offered) <= _LISTED else [*offered[:_LISTED], "..."])
    if chosen is None or (asks and not chosen):
        raise Problem(f"{field.label} must not be empty: choose one of {listed}")
    raise _refused(field, chosen if submitted is None else submitted, f"choose one of {listed}")


def _checkbox(field: Field, kind: Checkbox, submitted: Value | None) -> bool:
    on = kind.value if submitted is None else submitted
    if isinstance(on, str) and on in ("true", "on", "1"):
        on = True
    elif isinstance(on, str) and on in ("false", "off", "0", ""):
        on = False
    if not isinstance(on, bool):
        raise _refused(field, on, "it must be true or false")
    if field.required and not on:
        raise _refused(field, on, "it must be checked")
    return on


def _text(field: Field, kind: Text, submitted: Value | None) -> str:
    text = kind.default if submitted is None else submitted
    if isinstance(text, bool):
        # The service makes booleans of the texts `true` and `false`.
        text = _text_of(text)
    if not isinstance(text, str):
        raise _refused(field, text, "it must be text")
    if _NOT_PLAIN.search(text):
        raise _refused(field, text, "it must be one line without control characters")
    if field.required and not text.strip():
        raise Problem(f"{field.label} must not be empty: enter a text")
    if kind.max_length is not None and len(text) > kind.max_length:
        raise _refused(field, text, f"it must not be longer than {kind.max_length} characters")
    # A pattern says nothing about a field that is left empty, as in HTML.
    if kind.pattern is not None and text and not pattern.is_match(kind.pattern, text):
        help_text = f" ({field.help})" if field.help is not None else ""
        raise _refused(field, text, f"it must match the pattern {kind.pattern}{help_text}")
    return text


def _number(field: Field, kind: Number, submitted: Value | None) -> int | float:
    given = kind.default if submitted is None else submitted
    if given == "":
        raise Problem(f"{field.label} must not be empty: enter a number")
    is_number = _NUMBER.fullmatch(given) is not None if isinstance(given, str) else not isinstance(given, bool)
    number = float(given) if is_number else math.nan
    if not math.isfinite(number):
        raise _refused(field, given, "it must be a number")
    if kind.minimum is not None and number < kind.minimum:
        raise _refused(field, number, f"it must be at least {_text_of(kind.minimum)}")
    if kind.maximum is not None and number > kind.maximum:
        raise _refused(field, number, f"it must be at most {_text_of(kind.maximum)}")
    # Steps begin at the minimum, or else at the default, as in HTML.
    base = kind.default if kind.minimum is None else kind.minimum
    if kind.step is not None and not _is_on_step(number, kind.step, base):
        raise _refused(field, number, _step_of(kind.step, base))
    whole = number == math.floor(number) and abs(number) <= _MAX_WHOLE
    return int(number) if whole else number


def _is_on_step(number: float, step: float, base: float) -> bool:
    """Whether the number is a whole number of steps away from the base, with the tolerance of browsers for a step that has no
    exact binary form (a 2^24th of it), and of the numbers themselves."""
    distance = abs(number - base)
    steps = distance / step + 0.5
    # So large a number of steps, which may be infinite, is whole already.
    rest = 0.0 if steps > 2**53 else abs(distance - math.floor(steps) * step)
    return rest <= step / 2**24 + (abs(number) + abs(base)) / 2**51


def _step_of(step: float, base: float) -> str:
    if step == 1 and base == math.floor(base):
        return "it must be a whole number"
    return f"it must be {f'{_text_of(base)} plus ' if base else ''}a multiple of {_text_of(step)}"


def _text_of(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
