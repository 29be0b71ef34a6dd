"""Blueprints, as users of a real JupyterHub choose them."""

import pytest
from jupyter_lab import JupyterLab
from world import COURSE, Visitor, eventually


@pytest.fixture
def member(world, request):
    """A user of this test who is a member of the course."""
    name = request.node.name.replace("_", "-")[:40]
    visitor = Visitor(world, name)
    if COURSE not in [group["name"] for group in world.hub_api("GET", "/groups")]:
        world.hub_api("POST", f"/groups/{COURSE}")
    world.hub_api("POST", f"/groups/{COURSE}/users", json={"users": [name]})
    yield visitor
    for server in world.servers(name):
        world.hub_api("DELETE", f"/users/{name}/servers/{server}" if server else f"/users/{name}/server")
    eventually(lambda: not world.servers(name), what="the servers are gone")


def test_a_member_chooses_a_blueprint_in_the_form(world, member):
    page, fields = member.form()
    assert "The course" in page.text
    assert fields.choices["blueprint"] == ["", "course"]
    member.submit(blueprint="course")
    assert member.progress()[-1][1].get("ready") is True
    lab = world.lab(member.name)
    assert (lab["options"]["blueprint"], lab["env"]["COURSE"]) == ("course", "physics")
    jupyter = JupyterLab(world, member.name)
    kernel = jupyter.start_kernel("python3")
    code = "import os; print(os.environ['COURSE'], os.environ['COURSE_BASE'])"
    assert jupyter.run(kernel, code) == "physics 1\n"


def test_a_server_of_a_blueprint_s_name_is_of_that_blueprint(world, member):
    page, fields = member.form("course")
    assert page.ok
    assert "blueprint" not in fields.choices
    member.submit("course")
    assert member.progress("course")[-1][1].get("ready") is True
    assert world.lab(member.name, "course")["env"]["COURSE"] == "physics"


def test_who_is_not_a_member_is_not_offered_it(world):
    visitor = Visitor(world, "not-of-the-course")
    page, fields = visitor.form()
    assert "The course" not in page.text
    assert "blueprint" not in fields.choices
    answer = visitor.submit(blueprint="course")
    assert "there is no blueprint `course` that you may choose" in answer.text.replace("&#39;", "'")
