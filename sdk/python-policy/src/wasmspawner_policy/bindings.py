"""Puts the classes of this package in place of those that componentize-py generates from the contract.

componentize-py looks classes up in the generated modules after it has imported the policy. It creates records from their
fields in the order of the contract, tells the cases of a variant by their class, and reads all else by the names of
attributes. So a policy gets and returns the classes of this package, and nothing is converted in a call that need not be.
"""

import importlib
from types import ModuleType

from . import authorize, errors, event, form, host, images, inject, lab_server, lowering, pod, quota, user, volume

CLASSES: dict[str, dict[str, type]] = {
    "imports.host": {
        "Level": host.Level,
        "KnownImage": host.KnownImage,
        "SiteData": host.SiteData,
        "ChildKind": host.ChildKind,
        "ChildOfLab": host.ChildOfLab,
        "UseOfUser": host.UseOfUser,
        "UseOfDays": host.UseOfDays,
        "LabBlueprint": host.LabBlueprint,
    },
    "imports.types": {
        "Group": user.Group,
        "UserQuota": user.UserQuota,
        "User": user.User,
        "FieldError": errors.FieldError,
        "Denial": errors.Denial,
        "Error_Denied": errors.Denied,
        "Error_Invalid": errors.Invalid,
        "Error_RetryLater": errors.RetryLater,
        "Error_Internal": errors.Internal,
    },
    "exports.form": {
        "FormContext": form.FormContext,
        "FieldKind_Select": form.Select,
        "FieldKind_Radio": form.Radio,
        "FieldKind_Checkbox": form.Checkbox,
        "FieldKind_Text": form.Text,
        "FieldKind_Number": form.Number,
        "Form_Fields": form.Fields,
        "Form_Html": form.Html,
    },
    "exports.quota": {"Usage": quota.Usage},
    "exports.authorize": {
        "Action": authorize.Action,
        "Request": authorize.AuthorizeRequest,
        "Verdict_Allow": authorize.Allow,
        "Verdict_Deny": authorize.Deny,
    },
    "exports.inject": {
        "WorkloadKind": inject.WorkloadKind,
        "Container": inject.Container,
        "Volume": inject.WorkloadVolume,
        "Workload": inject.Workload,
        "Verdict_Deny": authorize.Deny,
    },
    "exports.events": {"Happening": event.Happening, "Event": event.Event},
    "exports.build_pod": {
        "EnvValue_Literal": lowering.Literal,
        "EnvValue_SecretRef": pod.SecretRef,
        "EnvValue_FieldRef": pod.FieldRef,
        "VolumeSource_Nfs": volume.Nfs,
        "VolumeSource_Claim": volume.Claim,
        "VolumeSource_ConfigMap": volume.ConfigMap,
        "VolumeSource_Secret": volume.Secret,
        "VolumeSource_EmptyDir": volume.EmptyDir,
        "VolumeSource_HostPath": volume.HostPath,
    },
    "exports.lab_server": {
        "Probe_Http": lab_server.HttpProbe,
        "Probe_Tcp": lab_server.TcpProbe,
        "Probe_None_": lab_server.NoProbe,
    },
    "exports.images": {
        "Place_Automatic": images.Automatic,
        "Place_First": images.First,
        "Place_Rest": images.Rest,
        "Place_Hidden": images.Hidden,
    },
}
"""The classes by generated module and name."""


def module(name: str) -> ModuleType | None:
    """A generated module; `None` if the component does not have its interface."""
    try:
        return importlib.import_module(f"wit_world.{name}")
    except ModuleNotFoundError:
        return None


def put_in_place() -> None:
    """Replaces the generated classes."""
    for name, classes in CLASSES.items():
        generated = module(name)
        if generated is None:
            continue
        for attribute, ours in classes.items():
            # A name that is not there would be a class of this package that componentize-py does not know.
            getattr(generated, attribute)
            setattr(generated, attribute, ours)
