import json

import pytest
from wasmspawner_policy import Section, quantity
from wasmspawner_policy.config import ConfigErrors, read
from wasmspawner_policy.testing import TestKit  # noqa: F401  (importing it must not make pytest collect it)


def everything(config: Section) -> None:
    config.required("name", str)
    config.list("sizes", lambda size: size.required("cpu", int))
    config.map("env", lambda entry: entry.optional("on", bool))
    config.section("more", lambda more: more.optional("flag", bool))


def problems(text: str) -> dict[str, str]:
    with pytest.raises(ConfigErrors) as raised:
        read(text, everything)
    return {error.field: error.message for error in raised.value.errors}


def test_all_errors_are_reported_with_their_json_pointers() -> None:
    config = {"sizes": [{"cpu": 1}, {"cpu": "x", "ram": 2}, 3], "env": {"a/b": {"on": 1}}, "more": 4}
    found = problems(json.dumps(config))
    assert list(found) == ["/name", "/sizes/1/cpu", "/sizes/1/ram", "/sizes/2", "/env/a~1b/on", "/more"]
    assert found["/name"] == "is missing"
    assert found["/sizes/1/cpu"] == "must be a whole number, not a string"
    assert found["/sizes/1/ram"] == "is not a key here; there are cpu"
    assert found["/more"] == "must be an object, not a number"


def test_a_configuration_that_is_no_json_object_is_one_error() -> None:
    assert "is not JSON" in problems("[")[""]
    assert problems("[]") == {"": "must be an object, not a list"}


@pytest.mark.parametrize(
    ("of", "value"), [(int, True), (int, 1.5), (str, 1), (bool, 0), (list, {}), (dict, []), (float, "1")]
)
def test_a_value_of_another_type_is_an_error(of: type, value: object) -> None:
    with pytest.raises(ConfigErrors) as raised:
        read(json.dumps({"key": value}), lambda config: config.required("key", of))
    assert raised.value.errors[0].field == "/key"


def test_null_counts_as_absent_and_a_whole_number_as_a_number() -> None:
    assert read('{"a": null}', lambda config: config.optional("a", str, "b"))[0] == "b"
    assert read('{"a": 1}', lambda config: config.required("a", float))[0] == 1.0


def test_a_number_may_stand_for_a_quantity() -> None:
    assert read('{"cpu": 2}', lambda config: config.required_parsed("cpu", quantity.cpu_millis))[0] == 2000
    with pytest.raises(ConfigErrors, match=r"`2x` is not an amount of CPU, such as 500m, 2 or 0.5"):
        read('{"cpu": "2x"}', lambda config: config.parsed("cpu", quantity.cpu_millis))


def test_an_entry_of_a_list_of_texts_is_told_with_its_place() -> None:
    with pytest.raises(ConfigErrors) as raised:
        read('{"groups": ["a", 1]}', lambda config: config.texts("groups"))
    assert [error.field for error in raised.value.errors] == ["/groups/1"]


def test_templates_are_checked_once() -> None:
    def template(config: Section) -> str | None:
        return config.template("path")

    assert read('{"path": "{username}"}', template, is_check=True)[0] == "{username}"
    assert read('{"path": "{wrong}"}', template)[0] == "{wrong}"
    with pytest.raises(ConfigErrors, match=r"unknown field \{wrong\}; there are .*username"):
        read('{"path": "{wrong}"}', template, is_check=True)


def test_warnings_do_not_refuse() -> None:
    assert read("{}", lambda config: config.warning("labs", "is absent"))[1] == ["/labs: is absent"]


def test_a_policy_that_stumbles_over_a_wrong_value_reports_that_value() -> None:
    with pytest.raises(ConfigErrors, match="/n: is missing"):
        read("{}", lambda config: 1 / config.required("n", int))
    with pytest.raises(ZeroDivisionError):
        read('{"n": 0}', lambda config: 1 / config.required("n", int))
