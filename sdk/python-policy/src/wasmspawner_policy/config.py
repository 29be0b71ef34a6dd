"""Reads a configuration and collects all errors in it, each with its JSON pointer."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from . import host
from .errors import FieldError

T = TypeVar("T")
_NOTHING: Any = object()


class ConfigErrors(Exception):
    """All errors in a configuration, in the order of reading."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(f"{error.field or '/'}: {error.message}" for error in errors))
        self.errors = errors


class Section:
    """One object of the configuration. Keys that are never read are errors.

    Whatever is wrong is kept with its place, and reading goes on with a value of the right type, so that all errors are
    reported at once.
    """

    def __init__(self, entries: dict[str, Any], place: str, findings: "Findings") -> None:
        self._entries = entries
        self._place = place
        self._findings = findings
        self._known: list[str] = []

    def required(self, key: str, of: type[T]) -> T:
        """A required value of the type `str`, `bool`, `int`, `float`, `list` or `dict`. Returns the type's empty value if it
        is absent or wrong, which is an error."""
        if key not in self._entries:
            self._known.append(key)
            self.problem(key, "is missing")
        value = self.optional(key, of)
        return of() if value is None else value

    def optional(self, key: str, of: type[T], default: Any = None) -> T | Any:
        """An optional value of this type, or the default. `null` counts as absent."""
        value = self._take(key)
        if value is None:
            return default
        if of is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        # A boolean is an int in Python, and not in JSON.
        if not isinstance(value, of) or (isinstance(value, bool) and of is not bool):
            self.problem(key, f"must be {_TYPES[of]}, not {_kind(value)}")
            return default
        return value

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty if absent."""
        texts = []
        for index, value in enumerate(self.optional(key, list, [])):
            if isinstance(value, str):
                texts.append(value)
            else:
                self.problem(f"{key}/{index}", f"must be a string, not {_kind(value)}", escape=False)
        return texts

    def parsed(self, key: str, parse: Callable[[str], T], default: Any = None) -> T | Any:
        """An optional text that `parse` converts, such as a quantity; a `ValueError` of it is the error. A number is accepted
        in place of a text: `cpu: 2`."""
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.problem(key, f"must be a string, not {_kind(value)}")
            return default
        try:
            return parse(value if isinstance(value, str) else json.dumps(value))
        except ValueError as error:
            self.problem(key, str(error))
            return default

    def required_parsed(self, key: str, parse: Callable[[str], T], default: Any = 0) -> T | Any:
        """A required text that `parse` converts. Returns the default if it is absent or wrong, which is an error."""
        if not self.has(key):
            self.problem(key, "is missing")
        return self.parsed(key, parse, default)

    def section(self, key: str, read: Callable[["Section"], T]) -> T | None:
        """An optional object."""
        value = self._take(key)
        return None if value is None else self._findings.open(value, self.pointer_to(key), read, None)

    def list(self, key: str, read: Callable[["Section"], T]) -> list[T]:
        """A list of objects; empty if absent."""
        found = []
        for index, item in enumerate(self.optional(key, list, [])):
            value = self._findings.open(item, f"{self.pointer_to(key)}/{index}", read, _NOTHING)
            if value is not _NOTHING:
                found.append(value)
        return found

    def map(self, key: str, read: Callable[["Section"], T]) -> dict[str, T]:
        """A map of objects by name; empty if absent."""
        found = {}
        for name, item in self.optional(key, dict, {}).items():
            value = self._findings.open(item, f"{self.pointer_to(key)}/{_escaped(name)}", read, _NOTHING)
            if value is not _NOTHING:
                found[name] = value
        return found

    def template(self, key: str) -> str | None:
        """An optional text that may contain template fields, for `host.expand`."""
        text: str | None = self.optional(key, str)
        if text is not None and self.is_check:
            try:
                host.expand(text)
            except ValueError as error:
                self.problem(key, f"`{text}` is not a valid template: {error}")
        return text

    @property
    def is_check(self) -> bool:
        """True during the check before the policy is used, where expensive checks belong."""
        return self._findings.is_check

    def has(self, key: str) -> bool:
        """True if the key is present."""
        return key in self._entries

    def problem(self, key: str, message: str, *, escape: bool = True) -> None:
        """Reports an error in the value of `key`; `""` means this object. With `escape=False`, `key` is a path."""
        pointer = self.pointer_to(key) if escape else f"{self._place}/{key}"
        self._findings.problems.append(FieldError(pointer, message))

    def warning(self, key: str, message: str) -> None:
        """Reports a value that is allowed but suspicious."""
        self._findings.warnings.append(f"{self.pointer_to(key)}: {message}")

    def pointer_to(self, key: str) -> str:
        """The JSON pointer of `key`; `""` means this object."""
        return f"{self._place}/{_escaped(key)}" if key else self._place

    def refuse_unknown_keys(self) -> None:
        """Reports the keys that nothing has read."""
        for key in self._entries:
            if key not in self._known:
                self.problem(key, f"is not a key here; there are {', '.join(self._known)}")

    def _take(self, key: str) -> Any:
        self._known.append(key)
        return self._entries.get(key)


class Findings:
    """What was found while a configuration was read."""

    def __init__(self, *, is_check: bool) -> None:
        self.is_check = is_check
        self.problems: list[FieldError] = []
        self.warnings: list[str] = []

    def open(self, value: Any, place: str, read: Callable[[Section], T], instead: Any) -> T | Any:
        """What `read` makes of an object; `instead` if the value is none."""
        if not isinstance(value, dict):
            self.problems.append(FieldError(place, f"must be an object, not {_kind(value)}"))
            return instead
        section = Section(value, place, self)
        result = read(section)
        section.refuse_unknown_keys()
        return result


def read(text: str, read: Callable[[Section], T], *, is_check: bool = False) -> tuple[T, list[str]]:
    """Reads a configuration from JSON. Returns the result, and warnings. Raises `ConfigErrors`."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigErrors([FieldError("", f"is not JSON: {error}")]) from None
    findings = Findings(is_check=is_check)
    try:
        result = findings.open(value, "", read, None)
    except Exception:
        # A policy may stumble over the stand-in of a value that was reported already.
        if not findings.problems:
            raise
    if findings.problems:
        raise ConfigErrors(findings.problems)
    return result, findings.warnings


_TYPES: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "null" if value is None else _TYPES[type(value)]


def _escaped(key: str) -> str:
    """Escapes a key for a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
