"""What a policy is: a class with a method for each thing that it decides."""

import difflib
import re
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar

from .authorize import AuthorizeRequest, Deny, Verdict
from .config import Section
from .event import Event
from .form import Field, FormContext, Html, fields_of
from .images import ImageMenu, WantedImage
from .inject import Access, Workload
from .lab_server import Settings
from .options import Options
from .pod import Customization
from .quota import Quota, Usage
from .submission import check
from .user import User

HOOKS = {
    "form": "form",
    "quota": "quota",
    "authorize": "authorize",
    "inject": "inject",
    "on_event": "events",
    "build_pod": "build-pod",
    "lab_server": "lab-server",
    "lab_files": "lab-files",
    "images": "images",
}
"""The methods that make a policy export an interface, with the name of the interface."""


class Policy:
    """A policy. It exports the hooks whose methods it overrides; the other policies of the chain decide the rest. It has no
    other public methods, so that a misspelled hook is noticed: the names of its own begin with `_`.

    A hook returns its answer, or raises `Denied`, `Invalid`, `RetryLater` or `Internal`. Every call begins with a copy of
    the policy that was created when it was loaded, so a policy keeps no state between calls.
    """

    name: ClassVar[str] = ""
    version: ClassVar[str] = ""
    description: ClassVar[str] = ""
    """What of these is empty comes from `pyproject.toml` beside the policy; without one, from the class's name
    (`sizes-by-group` for `SizesByGroup`) and the first line of its documentation."""
    config_schema: ClassVar[dict[str, Any] | bool] = True
    """JSON Schema (2020-12) of the configuration, for people and tools."""

    def __init__(self, config: Section) -> None:
        """Reads the configuration. What is wrong is reported through the section, which then discards the policy.

        The service calls this once when the policy is loaded. So it must not depend on time, on random numbers, or on
        what the service knows about images.
        """

    def form(self, context: FormContext) -> Sequence[Field] | Html:
        """The fields that this user sees, or HTML of the policy's own."""
        raise NotImplementedError

    def parse(self, submission: Options, context: FormContext) -> Options:
        """Converts a submission to options. Unless it is overridden, it checks the submission against the fields of
        `form`. Raises `Invalid` with all fields that are wrong."""
        return check(fields_of(self.form(context)), submission)

    def quota(self, user: User, usage: Usage) -> Quota:
        """The limits of this user."""
        raise NotImplementedError

    def authorize(self, request: AuthorizeRequest) -> Verdict:
        """Allows or denies an action."""
        raise NotImplementedError

    def inject(self, user: User, server: str, options: Options, workload: Workload) -> Access | Deny:
        """Allows or denies a lab in the pods of a workload, and decides what it sees of them."""
        raise NotImplementedError

    def on_event(self, event: Event) -> None:
        """Hears what has happened. Nobody waits, so all that this can do is to write to the log."""
        raise NotImplementedError

    def build_pod(self, user: User, server: str, options: Options) -> Customization:
        """The settings that this policy wants for the lab's pod."""
        raise NotImplementedError

    def lab_server(self, user: User, server: str, options: Options) -> Settings:
        """How the program in the lab's container is reached."""
        raise NotImplementedError

    def lab_files(self, user: User, server: str, options: Options) -> dict[str, str]:
        """The text files of the lab: the content of each by its absolute path, at most 512 KiB together. They are
        read-only. Users can read them, and so can everybody who reads ConfigMaps: a secret is no file."""
        raise NotImplementedError

    def images(self, user: User, server: str) -> ImageMenu | None:
        """The images from which this user chooses; `None` if this policy has none."""
        raise NotImplementedError

    def prepull(self) -> list[WantedImage]:
        """The images that nodes are to have before somebody asks for them, the most important first. Asked only if
        `images` is there, too."""
        return []


def info(policy: type[Policy], project: Mapping[str, Any] | None = None) -> tuple[str, str, str]:
    """Name, version and description. `project` is the table of that name in `pyproject.toml`."""
    known = {"version": "0.1.0"} | {key: value for key, value in (project or {}).items() if isinstance(value, str)}
    name = policy.name or known.get("name") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", policy.__name__).lower()
    documentation = (policy.__doc__ or "").strip().splitlines() or [""]
    description = policy.description or known.get("description") or documentation[0].removesuffix(".")
    return name, policy.version or known["version"], description


def interfaces(policy: type[Policy]) -> list[str]:
    """The interfaces of the hooks that a policy has."""
    return [name for method, name in HOOKS.items() if getattr(policy, method) is not getattr(Policy, method)]


def strangers(policy: type[Policy]) -> list[str]:
    """Problems with public methods that no hook calls: a rule in one of them would never hold."""
    known = {name for name in vars(Policy) if not name.startswith("_")}
    found = []
    for owner in policy.__mro__[: policy.__mro__.index(Policy)]:
        for name, value in vars(owner).items():
            if name.startswith("_") or name in known or not isinstance(getattr(value, "__func__", value), FunctionType):
                continue
            near = difflib.get_close_matches(name.lower().replace("-", "_"), sorted(known), 1, 0.7)
            meant = f"; is `{near[0]}` meant?" if near else ""
            found.append(
                f"{owner.__name__}.{name} is no hook, so it is never called{meant or '.'} The names of a policy's own methods begin"
                f" with `_`; the hooks are {', '.join(HOOKS)}"
            )
    return found


def checked(hook: str, answer: Any, *types: type) -> Any:
    """The answer of a hook, if it has one of these types. Raises `TypeError`, because a missing answer must never count
    as one."""
    if not isinstance(answer, types):
        expected = " or ".join(one.__name__ for one in types)
        raise TypeError(f"{hook} returned {answer!r}; return {expected}")
    return answer
