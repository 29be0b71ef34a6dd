"""Converts a submitted spawn form to the options that the service expects."""

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from .lab_error import LabError

_BOOLEANS = {"true": True, "false": False}


def options_from_form(form: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Convert a form's lists of one value to that value; `"true"` and `"false"` become booleans. A field with several
    values stays a list.

    Raises `LabError` (400) for a field without a value or with a file.
    """
    options: dict[str, Any] = {}
    for key, values in form.items():
        if not values:
            raise LabError(400, f"{key}: has no value", reason="invalid_option")
        if not all(isinstance(value, str) for value in values):
            message = f"{key.removesuffix('_file')}: files cannot be submitted"
            raise LabError(400, message, reason="invalid_option")
        options[key] = list(values) if len(values) > 1 else _BOOLEANS.get(values[0], values[0])
    return without_own_fields(options)


def without_own_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without the fields of JupyterHub itself, which every form has."""
    return {key: value for key, value in options.items() if key != "_xsrf"}


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("input", "select", "textarea", "button") and (name := dict(attrs).get("name")):
            self.names.add(name)


def form_fields(form: str) -> set[str]:
    """The names of the fields of a form in HTML."""
    fields = _Fields()
    fields.feed(form)
    return fields.names
