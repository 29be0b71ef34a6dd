import pytest

from wasmspawner.lab_error import LabError
from wasmspawner.options import form_fields, options_from_form


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ({}, {}),
        ({"size": ["large"]}, {"size": "large"}),
        ({"debug": ["true"], "reset": ["false"]}, {"debug": True, "reset": False}),
        ({"note": ["True"]}, {"note": "True"}),
        ({"note": [""]}, {"note": ""}),
        ({"size": ["large"], "_xsrf": ["2|abc"]}, {"size": "large"}),
        ({"modules": ["physics", "true"]}, {"modules": ["physics", "true"]}),
    ],
)
def test_accepted(form, options):
    assert options_from_form(form) == options


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"size": []}, "size: has no value"),
        ({"notes_file": [{"filename": "a.txt", "body": b""}]}, "notes: files cannot be submitted"),
    ],
)
def test_refused(form, message):
    with pytest.raises(LabError) as raised:
        options_from_form(form)
    assert (raised.value.status_code, raised.value.jupyterhub_message) == (400, message)


def test_the_fields_of_a_form_are_those_that_a_browser_would_submit():
    form = """<p name="p"><SELECT name=size><option value="a" selected></select><input type="radio" name='x"y'/>
      <textarea name="notes"></textarea><input><script>var input = '<input name="no">'</script>"""
    assert form_fields(form) == {"size", 'x"y', "notes"}
