import pytest
from wasmspawner_policy import Invalid, Options, Value
from wasmspawner_policy.form import Checkbox, Choice, Condition, Field, Number, Radio, Text
from wasmspawner_policy.submission import check

FIELDS = [
    Field("size", "Size", Radio([Choice("small", "Small"), Choice("gpu", "GPU")])),
    Field("gpus", "GPUs", Number(1, minimum=0, maximum=8), visible_when=Condition("size", ["gpu"])),
    Field("debug", "Debug", Checkbox()),
    Field("note", "Note", Text(max_length=5)),
]


def wrong(submission: Options) -> list[str]:
    with pytest.raises(Invalid) as raised:
        check(FIELDS, submission)
    return [error.field for error in raised.value.value]


def test_a_field_that_is_not_submitted_gets_its_default() -> None:
    assert check(FIELDS, {}) == {"size": "small", "debug": False, "note": ""}


def test_submitted_texts_become_values_of_the_field_type() -> None:
    options = check(FIELDS, {"size": "gpu", "gpus": "2", "debug": "on"})
    assert options == {"size": "gpu", "gpus": 2, "debug": True, "note": ""}
    assert type(options["gpus"]) is int


def test_every_wrong_field_is_named() -> None:
    assert wrong({"size": "huge", "debug": "maybe", "note": "a\nb", "root": True}) == ["size", "debug", "note", "root"]
    assert wrong({"note": "longer"}) == ["note"]


@pytest.mark.parametrize("value", ["9", "-1", "NaN", "inf", "x", "", "1_0", True])
def test_numbers_outside_their_range_are_refused(value: Value) -> None:
    assert wrong({"size": "gpu", "gpus": value}) == ["gpus"]


def test_a_required_field_needs_a_value() -> None:
    for kind in (Radio([]), Text()):
        with pytest.raises(Invalid):
            check([Field("field", "Field", kind, required=True)], {})
