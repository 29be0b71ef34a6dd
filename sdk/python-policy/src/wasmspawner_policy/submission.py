"""Checks a submission against the fields of a form."""

import math
from collections.abc import Sequence

from .errors import FieldError, Invalid
from .form import Checkbox, Choices, Field, Number, Text
from .options import Options, Value


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
    errors += [FieldError(name, "is not a field of this form") for name in sorted(submission.keys() - known)]
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
    kind = field.kind
    if isinstance(kind, Choices):
        return _choice(kind, field.required, submitted)
    if isinstance(kind, Checkbox):
        return _checkbox(kind, submitted)
    if isinstance(kind, Text):
        return _text(kind, field.required, submitted)
    return _number(kind, submitted)


def _choice(kind: Choices, required: bool, submitted: Value | None) -> str | None:
    chosen = kind.default if submitted is None else _text_of(submitted)
    if chosen is None:
        if required:
            raise Problem("choose one")
        return None
    values = [choice.value for choice in kind.choices]
    if chosen not in values:
        offered = values if len(values) <= 10 else [*values[:10], "..."]
        raise Problem(f"is not offered; choose one of {', '.join(offered)}")
    return chosen


def _checkbox(kind: Checkbox, submitted: Value | None) -> bool:
    if submitted is None:
        return kind.value
    if isinstance(submitted, bool):
        return submitted
    if submitted in ("true", "on", "1"):
        return True
    if submitted in ("false", "off", "0", ""):
        return False
    raise Problem("must be true or false")


def _text(kind: Text, required: bool, submitted: Value | None) -> str:
    text = kind.default if submitted is None else submitted
    if not isinstance(text, str):
        raise Problem("must be text")
    if required and not text.strip():
        raise Problem("must not be empty")
    if kind.max_length is not None and len(text) > kind.max_length:
        raise Problem(f"is longer than {kind.max_length} characters")
    # The control characters of Unicode, which are not printable and could hide in a log.
    if any(char < " " or "\x7f" <= char <= "\x9f" for char in text):
        raise Problem("must be one line without control characters")
    return text


def _number(kind: Number, submitted: Value | None) -> int | float:
    if isinstance(submitted, bool):
        raise Problem("must be a number")
    try:
        number = kind.default if submitted is None else float(submitted)
    except (ValueError, OverflowError):
        raise Problem("must be a number") from None
    if not math.isfinite(number) or (isinstance(submitted, str) and "_" in submitted):
        raise Problem("must be a number")
    if kind.minimum is not None and number < kind.minimum:
        raise Problem(f"must be at least {_text_of(kind.minimum)}")
    if kind.maximum is not None and number > kind.maximum:
        raise Problem(f"must be at most {_text_of(kind.maximum)}")
    whole = number == math.floor(number) and abs(number) < 9e15
    return int(number) if whole else float(number)


def _text_of(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
