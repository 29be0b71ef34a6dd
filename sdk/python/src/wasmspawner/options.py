"""Converts a submitted spawn form to the options that the service expects."""

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import LabError

_BOOLEANS = {"true": True, "false": False}


def options_from_form(form: Mapping[str, Sequence[Any]]) -> dict[str, str | bool]:
    """Convert a form's lists to single values; `"true"` and `"false"` become booleans.

    Raises `LabError` (400) for a field that was submitted more than once, without a value, or as a file.
    """
    options: dict[str, str | bool] = {}
    for key, values in form.items():
        if key == "_xsrf":  # JupyterHub's own field
            continue
        if len(values) != 1:
            raise LabError(400, f"{key}: expected one value, got {len(values)}")
        value = values[0]
        if not isinstance(value, str):
            raise LabError(400, f"{key.removesuffix('_file')}: files cannot be submitted")
        options[key] = _BOOLEANS.get(value, value)
    return options
