"""Functions of the service that a policy can call. In native tests `testing.given` says what they return."""

import json
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any

from . import stand_in
from .options import Options
from .stand_in import ChildKind, ChildOfLab, KnownImage, LabBlueprint, UseOfDays, UseOfUser

__all__ = [
    "ChildKind",
    "ChildOfLab",
    "KnownImage",
    "LabBlueprint",
    "Level",
    "SiteData",
    "UseOfDays",
    "UseOfUser",
    "blueprint",
    "child",
    "data",
    "debug",
    "error",
    "expand",
    "images",
    "info",
    "lab_nodes",
    "last_options",
    "log",
    "now_millis",
    "past_use",
    "present_use",
    "random",
    "warn",
]

# The bindings exist only in a component.
_host: Any = None
_Err: Any = ()
if sys.platform == "wasi":
    from componentize_py_types import Err as _Err
    from wit_world.imports import host as _host


class Level(Enum):
    """The level of a log line."""

    DEBUG = 0
    """For the author of the policy."""
    INFO = 1
    """For the operator."""
    WARN = 2
    """A possible problem."""
    ERROR = 3
    """Something failed."""


@dataclass
class SiteData:
    """Data of the site, such as who is in which team."""

    version: str
    """Differs where the data does."""
    json: str

    def value(self) -> Any:
        """The data, read from its JSON."""
        return json.loads(self.json)


def log(level: Level, message: str) -> None:
    """Writes a line to the service's log; at most 64 lines and 16 KiB per call of a hook."""
    if _host is None:
        stand_in.current.log.append((level.name.lower(), message))
    else:
        _host.log(level, message)


def debug(message: str) -> None:
    """Logs a line for the author of the policy."""
    log(Level.DEBUG, message)


def info(message: str) -> None:
    """Logs a line for the operator."""
    log(Level.INFO, message)


def warn(message: str) -> None:
    """Logs a possible problem."""
    log(Level.WARN, message)


def error(message: str) -> None:
    """Logs a failure."""
    log(Level.ERROR, message)


def now_millis() -> int:
    """The time in milliseconds since the Unix epoch. It is constant during one call of a hook."""
    if _host is None:
        return stand_in.current.now_millis
    time: int = _host.clock_now()
    return time


def random(length: int) -> bytes:
    """Random bytes; at most 1024 per call of this function."""
    if _host is None:
        return stand_in.current.random[:length].ljust(min(length, 1024), b"\0")
    # The bindings declare a list of bytes and return `bytes`.
    return bytes(_host.random(length))


def expand(template: str) -> str:
    """Expands the fields of the lab in a template of the operator, such as `{username}`; `{{` stands for a brace. Outside
    of `build_pod`, `lab_server` and `lab_files` the template is only checked. Never pass text of a user.

    Raises `ValueError` that says what is wrong with the template, and which fields there are.
    """
    # Most texts contain no field, and a call of the host takes time.
    if "{" not in template and "}" not in template:
        return template
    if _host is None:
        return stand_in.expand(template)
    try:
        expanded: str = _host.expand(template)
    except _Err as problem:
        raise ValueError(problem.value) from None
    return expanded


def images(repository: str) -> list[KnownImage]:
    """What the service knows about the images of a repository, such as `registry.example.org/site/lab`; newest first."""
    if _host is None:
        return stand_in.current.images.get(repository, [])
    known: list[KnownImage] = _host.images(repository)
    return known


def data(name: str) -> SiteData | None:
    """The data that the policy's `data` in the service's configuration names; `None` if it names no such. Do not call it
    while the configuration is read, which happens once."""
    if _host is not None:
        found: SiteData | None = _host.data(name)
        return found
    known = stand_in.current.data
    return SiteData("test", json.dumps(known[name])) if name in known else None


def lab_nodes() -> int:
    """The number of nodes on which labs can run; 0 if the service does not watch nodes."""
    if _host is None:
        return stand_in.current.lab_nodes
    number: int = _host.lab_nodes()
    return number


def child() -> ChildOfLab | None:
    """The kernel or Dask pool that the call is about; `None` if it is about a lab itself. Known to `authorize`, `quota`,
    `build_pod` and `lab_server`. For a pool, `build_pod` decides about one worker; the scheduler is like it."""
    if _host is None:
        return stand_in.current.child
    found: ChildOfLab | None = _host.child()
    return found


def present_use() -> UseOfUser:
    """What the user has now, of all labs together, without what the call is about. Known where `child` is; zeros
    elsewhere."""
    if _host is None:
        return stand_in.current.present_use
    use: UseOfUser = _host.present_use()
    return use


def past_use(days: int) -> UseOfDays:
    """What the user has used in the last `days` days of UTC, the present one included: 1 is today; at most 30. Known
    where `child` is; zeros elsewhere."""
    if _host is None:
        return stand_in.past_use(days)
    use: UseOfDays = _host.past_use(days)
    return use


def blueprint() -> LabBlueprint | None:
    """The blueprints of the lab that the call is about, or of the lab of the child that it is about; `None` if none
    holds. Known to `authorize` for a start, `quota`, `build_pod` and `lab_server`."""
    if _host is None:
        return stand_in.current.blueprint
    found: LabBlueprint | None = _host.blueprint()
    return found


def last_options() -> Options:
    """The submission of the form with which this server of the user was last started; empty if it never was, or if the site does
    not want it. Known to `form`. The service itself selects these choices in fields, so this is for a policy's own HTML. The
    user has written the values: escape them, and use only those that are still allowed."""
    if _host is None:
        return dict(stand_in.current.last_options)
    return {entry.name: entry.value.value for entry in _host.last_options()}
