from pathlib import Path

import pytest
from wasmspawner_policy import Policy, Quota, Usage, User
from wasmspawner_policy.build import BuildError, build, world
from wasmspawner_policy.command import main
from wasmspawner_policy.images import WantedImage
from wasmspawner_policy.policy import info, strangers

QUOTA = """
from wasmspawner_policy import Policy, Quota, Usage, User

class OneLab(Policy):
    def quota(self, user: User, usage: Usage) -> Quota:
        return Quota(labs=1)
"""


def test_the_world_has_the_hooks_of_the_policy_and_no_others() -> None:
    assert world(["quota", "build-pod"]) == (
        "package wasmspawner:policy@0.1.0;\n"
        "world site-policy {\n  import host;\n  export metadata;\n  export config;\n  export prepare;\n"
        "  export quota;\n  export build-pod;\n}\n"
    )


def test_name_and_description_come_from_the_class() -> None:
    class SizesByGroup2(Policy):
        """Sizes of labs."""

    assert info(SizesByGroup2) == ("sizes-by-group2", "0.1.0", "Sizes of labs")
    project = {"name": "sizes", "version": "2.0.0", "dependencies": []}
    assert info(SizesByGroup2, project) == ("sizes", "2.0.0", "Sizes of labs")
    SizesByGroup2.name = "mine"
    assert info(SizesByGroup2, project)[0] == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"policy.py is not there; name the module of the policy with --module"),
        ("x = 1", r"must have exactly one class derived from Policy; it has none"),
        (QUOTA + "\nclass Other(OneLab): ...", r"it has OneLab, Other"),
        ("from wasmspawner_policy import Policy\nclass Empty(Policy): ...", r"Empty in policy.py decides nothing"),
        (QUOTA + "\n    def authorise(self, request): ...", r"OneLab.authorise is no hook.*is `authorize` meant\?"),
        (QUOTA + "\n    def build_pods(self, *all): ...", r"is `build_pod` meant\?"),
        (QUOTA + "\n    def size_of(self): ...", r"OneLab.size_of is no hook, so it is never called\. The names"),
    ],
)
def test_what_is_no_policy_is_told(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "policy.py").write_text(text)
    with pytest.raises(BuildError, match=message):
        build(tmp_path, tmp_path / "policy.wasm")


def test_methods_of_its_own_and_constants_are_no_hooks() -> None:
    class Base(Policy):
        SIZES = ("small",)

        def _size(self) -> str:
            return self.SIZES[0]

        def quota(self, user: User, usage: Usage) -> Quota:
            return Quota(labs=1)

    class Derived(Base):
        def prepull(self) -> list[WantedImage]:
            return []

    assert strangers(Derived) == []


def test_a_component_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.py").write_text(QUOTA)
    assert main(["build", str(tmp_path)]) == 0
    component = (tmp_path / f"{tmp_path.name}.wasm").read_bytes()
    assert component.startswith(b"\0asm\x0d\0\1\0"), "a component, and not a module"
    assert b"wasmspawner:policy/quota@0.1.0" in component
    assert b"wasmspawner:policy/form@0.1.0" not in component
    assert "MB" in capsys.readouterr().out


def test_a_policy_that_works_only_outside_of_a_component_is_told_briefly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.py").write_text("import sys\nif sys.platform == 'wasi': import nothing_such\n" + QUOTA)
    assert main(["build", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "No module named 'nothing_such'" in told
    assert "backtrace" not in told
