"""Fields hold submissions to all that they say: the table that the SDKs of all languages read."""

import json
from pathlib import Path
from typing import Any

import pytest
from wasmspawner_policy import FieldError, Internal, Invalid, Policy, User, pattern
from wasmspawner_policy.form import Checkbox, Choice, Field, FormContext, Kind, Number, Radio, Select, Text
from wasmspawner_policy.submission import check
from wasmspawner_policy.testing import TestKit

TABLE = json.loads((Path(__file__).resolve().parents[3] / "tests/tables/form-fields.json").read_text())


def field_of(row: dict[str, Any]) -> Field:
    field = row["field"]
    common = {"help": field.get("help"), "required": field.get("required", False)}
    return Field("name", "Label", kind_of(field), **common)


def kind_of(field: dict[str, Any]) -> Kind:
    if field["kind"] == "text":
        return Text(field.get("default", ""), None, field.get("maxLength"), field.get("pattern"))
    if field["kind"] == "number":
        return Number(field.get("default", 0), field.get("minimum"), field.get("maximum"), field.get("step"))
    if field["kind"] == "checkbox":
        return Checkbox()
    choices = [Choice(value, value) for value in field["choices"]]
    return Radio(choices) if field["kind"] == "radio" else Select(choices)


@pytest.mark.parametrize("row", TABLE["values"], ids=str)
def test_a_value_is_held_to_all_that_its_field_says(row: dict[str, Any]) -> None:
    submission = {"name": row["value"]} if "value" in row else {}
    if "problem" in row:
        with pytest.raises(Invalid) as raised:
            check([field_of(row)], submission)
        assert raised.value.value == [FieldError("name", row["problem"])]
    else:
        value = check([field_of(row)], submission)["name"]
        assert value == row["becomes"]
        assert isinstance(value, bool) == isinstance(row["becomes"], bool)


@pytest.mark.parametrize("row", TABLE["fields"], ids=str)
def test_a_field_that_cannot_be_checked_is_refused_before_anybody_sees_it(row: dict[str, Any]) -> None:
    class Shows(Policy):
        def form(self, context: FormContext) -> list[Field]:
            return [field_of(row)]

    policy = TestKit(Shows)
    if "problem" in row:
        with pytest.raises(Internal) as raised:
            policy.fields(User("ada"))
        assert str(raised.value) == f"the form's field name cannot be checked: {row['problem']}"
    else:
        assert policy.fields(User("ada")) == [field_of(row)]
        if "pattern" in row["field"]:
            assert not pattern.is_match(row["field"]["pattern"], "no such text")


def test_no_value_passes_a_field_that_cannot_be_checked() -> None:
    with pytest.raises(Invalid, match="code: Code cannot be checked now: tell the operators of this site"):
        check([Field("code", "Code", Text("x", pattern="(?=x)"))], {})
