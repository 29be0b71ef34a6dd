"""Calls a policy's hooks natively, for tests.

policy = TestKit(SizesByGroup, {"sizes": [{"name": "small", "cpu": 1, "memory": "2Gi"}]})
assert policy.parse(User("eve"), {"size": "small"}) == {"size": "small"}
"""

import json
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from . import stand_in
from .authorize import Action, Allow, AuthorizeRequest, Deny, Verdict
from .config import ConfigErrors, read
from .event import Event
from .form import Field, FormContext, fields_of
from .form import checked as checked_fields
from .images import ImageMenu, WantedImage
from .inject import Access, Workload
from .lab_server import Settings
from .options import Options
from .pod import Customization
from .policy import Policy, checked
from .quota import Quota, Usage
from .stand_in import Situation
from .user import User

__all__ = ["ConfigErrors", "Situation", "TestKit", "given"]

P = TypeVar("P", bound=Policy)


def given(**values: Any) -> AbstractContextManager[Situation]:
    """Calls hooks while the host answers this; the names are those of `Situation`:

    with given(now_millis=1_795_737_600_000, data={"teams": {"ada": "core"}}):
        ...
    """
    return stand_in.changed(**values)


class TestKit(Generic[P]):
    """A policy with a configuration. Raises `ConfigErrors` with all errors in it."""

    __test__ = False  # It is no class of tests, whatever its name is.

    def __init__(self, policy: type[P], config: dict[str, Any] | None = None) -> None:
        self.policy, self.warnings = read(json.dumps(config or {}), policy, is_check=True)

    def fields(self, user: User) -> list[Field]:
        """The fields that the user sees. Raises `Internal` if one of them cannot be checked."""
        return checked_fields(fields_of(self.policy.form(FormContext(user))))

    def parse(self, user: User, submission: Options) -> Options:
        """The options from a submission of the user."""
        options: Options = checked("parse", self.policy.parse(dict(submission), FormContext(user)), dict)
        return options

    def quota(self, user: User, labs: int = 0) -> Quota:
        """The limits of the user, who has this number of labs."""
        limits: Quota = checked("quota", self.policy.quota(user, Usage(labs)), Quota)
        return limits

    def may(self, action: Action, user: User, options: Options | None = None) -> Verdict:
        """Whether the user may do this."""
        answer = self.policy.authorize(AuthorizeRequest(action, user, "", options or {}))
        verdict: Verdict = checked("authorize", answer, Allow, Deny)
        return verdict

    def on_event(self, event: Event) -> None:
        """Lets the policy hear of something."""
        self.policy.on_event(event)

    def inject(self, user: User, workload: Workload, options: Options | None = None) -> Access | Deny:
        """Whether the user may have a lab in this workload, and what of it the lab sees."""
        answer = self.policy.inject(user, "", options or {}, workload)
        verdict: Access | Deny = checked("inject", answer, Access, Deny)
        return verdict

    def build_pod(self, user: User, options: Options | None = None) -> Customization:
        """The settings of the pod of the user's lab. Template fields expand to plain names and not to slugs: `{username}`
        is the username, `{pvc_name}` is `claim-` and the username."""
        with given(lab_of=user):
            answer = self.policy.build_pod(user, "", options or {})
        lab: Customization = checked("build_pod", answer, Customization)
        return lab

    def lab_server(self, user: User, options: Options | None = None) -> Settings:
        """How the program of the user's lab is reached."""
        with given(lab_of=user):
            settings: Settings = checked("lab_server", self.policy.lab_server(user, "", options or {}), Settings)
        return settings

    def lab_files(self, user: User, options: Options | None = None) -> dict[str, str]:
        """The content of the text files of the user's lab, by their paths."""
        with given(lab_of=user):
            files: dict[str, str] = checked("lab_files", self.policy.lab_files(user, "", options or {}), dict)
        return files

    def images(self, user: User) -> ImageMenu | None:
        """The menu of the user."""
        menu: ImageMenu | None = checked("images", self.policy.images(user, ""), ImageMenu, type(None))
        return menu

    def prepull(self) -> list[WantedImage]:
        """The images that are to be pulled in advance."""
        return self.policy.prepull()
