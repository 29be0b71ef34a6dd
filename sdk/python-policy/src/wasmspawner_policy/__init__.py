"""Write wasmspawner policies in Python.

A policy is a class with a method for each thing that it decides:

    from wasmspawner_policy import Policy, Quota, Usage, User

    class OneLab(Policy):
        \"\"\"One lab a user.\"\"\"

        def quota(self, user: User, usage: Usage) -> Quota:
            return Quota(labs=1)

`python -m wasmspawner_policy build FOLDER` makes the component of `FOLDER/policy.py`.
"""

from . import event, form, host, images, inject, lab_server, pattern, pod, quantity, volume
from .authorize import Action, Allow, AuthorizeRequest, Deny, Verdict
from .config import Section
from .errors import Denied, FieldError, Internal, Invalid, PolicyError, RetryLater
from .options import Options, Value
from .policy import Policy
from .quota import Quota, Usage
from .user import Group, User, UserQuota
from .weekly_window import WeeklyWindow

__all__ = [
    "Action",
    "Allow",
    "AuthorizeRequest",
    "Denied",
    "Deny",
    "FieldError",
    "Group",
    "Internal",
    "Invalid",
    "Options",
    "Policy",
    "PolicyError",
    "Quota",
    "RetryLater",
    "Section",
    "Usage",
    "User",
    "UserQuota",
    "Value",
    "Verdict",
    "WeeklyWindow",
    "event",
    "form",
    "host",
    "images",
    "inject",
    "lab_server",
    "pattern",
    "pod",
    "quantity",
    "volume",
]
