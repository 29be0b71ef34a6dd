"""The classes of this package agree with the contract."""

import subprocess
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType

import pytest
from wasmspawner_policy import authorize, bindings, form, images, inject, lab_server, lowering, pod, quota, volume
from wasmspawner_policy.build import CONTRACT

OTHERS = {
    "exports.form": (form.Choice, form.Condition, form.Field),
    "exports.quota": (quota.Quota,),
    "exports.inject": (inject.Access, inject.VolumeAccess),
    "exports.build_pod": (
        pod.AffinityPreset,
        pod.Customization,
        pod.InitContainer,
        pod.InitRun,
        pod.Mount,
        pod.ResourceClaim,
        pod.Resources,
        pod.SecurityProfile,
        pod.TaintEffect,
        pod.TimeLimits,
        pod.Toleration,
        pod.TolerationOperator,
        volume.AccessMode,
        volume.ClaimReclaim,
        volume.ClaimTemplate,
        volume.Volume,
    ),
    "exports.lab_server": (lab_server.Settings,),
    "exports.lab_files": (lowering.TextFile,),
    "exports.images": (images.Entry, images.ImageMenu, images.WantedImage),
    "imports.types": (pod.Image,),
}
"""The classes that are read by the names of their attributes, so that nothing puts them in place."""

VARIANT_RECORDS = {
    authorize.Deny: "Denial",
    form.Select: "ChoiceInput",
    form.Radio: "ChoiceInput",
    form.Text: "TextInput",
    form.Number: "NumberInput",
    pod.SecretRef: "KeyRef",
    volume.Nfs: "NfsSource",
    volume.Claim: "ClaimSource",
    volume.ConfigMap: "ObjectSource",
    volume.Secret: "ObjectSource",
    volume.EmptyDir: "EmptyDirSource",
}
"""The cases of variants that are the record themselves which the contract has in them."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bindings")
    (folder / "wit").mkdir()
    (folder / "wit" / "policy.wit").write_text(CONTRACT.read_text())
    command = [sys.executable, "-c", "from componentize_py import script; script()", "-q", "-d", str(folder / "wit")]
    subprocess.run([*command, "-w", "full-policy", "bindings", str(folder / "generated")], check=True)
    return folder / "generated"


@pytest.fixture
def modules(generated: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    monkeypatch.syspath_prepend(str(generated))
    for name in [name for name in sys.modules if name.split(".")[0] in ("wit_world", "componentize_py_types")]:
        monkeypatch.delitem(sys.modules, name)
    found = {name: bindings.module(name) for name in bindings.CLASSES | OTHERS}
    assert all(found.values())
    return found  # type: ignore[return-value]


def names(of: type) -> list[str]:
    return [one.name for one in of] if issubclass(of, Enum) else [one.name for one in fields(of)]


def test_every_class_that_is_put_in_place_has_the_fields_of_the_contract(modules: dict[str, ModuleType]) -> None:
    for module, classes in bindings.CLASSES.items():
        for name, ours in classes.items():
            theirs = getattr(modules[module], name)
            if ours in VARIANT_RECORDS:
                record = VARIANT_RECORDS[ours]
                record = getattr(modules[module], record, None) or getattr(modules["imports.types"], record)
                assert names(ours) == names(record), name
                assert ours.value.fget is not None
            elif issubclass(ours, Enum) or (is_dataclass(ours) and issubclass(theirs, Enum)):
                assert [(one.name, one.value) for one in ours] == [(one.name, one.value) for one in theirs], name
            elif is_dataclass(ours):
                assert names(ours) == names(theirs), name


def test_every_other_class_has_the_names_of_the_contract(modules: dict[str, ModuleType]) -> None:
    for module, classes in OTHERS.items():
        for ours in classes:
            assert sorted(names(ours)) == sorted(names(getattr(modules[module], ours.__name__))), ours


def test_every_case_of_a_variant_that_a_policy_returns_is_known(modules: dict[str, ModuleType]) -> None:
    """A case that is missing here would be a class of componentize-py that no policy can name."""
    wrapped = {"Verdict_Allow", *(f"Value_{kind}" for kind in ("Boolean", "Integer", "Number", "Text"))}
    for name, module in modules.items():
        cases = {one for one, value in vars(module).items() if isinstance(value, type) and "_" in one}
        assert cases - wrapped <= bindings.CLASSES.get(name, {}).keys(), name


def test_putting_in_place_replaces_the_generated_classes(modules: dict[str, ModuleType]) -> None:
    bindings.put_in_place()
    assert modules["exports.form"].FieldKind_Radio is form.Radio
