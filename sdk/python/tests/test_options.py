import pytest

from wasmspawner.errors import LabError
from wasmspawner.options import options_from_form


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ({}, {}),
        ({"size": ["large"]}, {"size": "large"}),
        ({"debug": ["true"], "reset": ["false"]}, {"debug": True, "reset": False}),
        ({"note": ["True"]}, {"note": "True"}),
        ({"note": [""]}, {"note": ""}),
        ({"size": ["large"], "_xsrf": ["2|abc"]}, {"size": "large"}),
    ],
)
def test_accepted(form, options):
    assert options_from_form(form) == options


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"size": ["small", "large"]}, "size: expected one value, got 2"),
        ({"size": []}, "size: expected one value, got 0"),
        ({"notes_file": [{"filename": "a.txt", "body": b""}]}, "notes: files cannot be submitted"),
    ],
)
def test_refused(form, message):
    with pytest.raises(LabError) as raised:
        options_from_form(form)
    assert (raised.value.status_code, raised.value.jupyterhub_message) == (400, message)
