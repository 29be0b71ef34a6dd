"""JSON in answers of the service, decoded in one place."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")


def decode(body: bytes, parse: Callable[[Any], _T]) -> _T:
    """The result of `parse` for the JSON in `body`. Raises `ValueError`, whatever is wrong with it.

    Deep nesting, long numbers and unexpected types raise many kinds of errors, and none of them is a fault of the
    caller.
    """
    try:
        text = body.decode()
        value = json.loads(text)
        if "\\u" in text:
            # Half of a surrogate pair is valid JSON, and could be written neither to a page nor to a database.
            json.dumps(value, ensure_ascii=False).encode()
        return parse(value)
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error!s:.200}") from error


def texts(entry: Mapping[str, Any], *names: str) -> dict[str, str]:
    """These members of an object as texts; empty for those that are missing."""
    return {name: str(entry.get(name) or "") for name in names}
