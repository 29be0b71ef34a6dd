"""Components in the program, if the variable `WASMSPAWNER` names it."""

import os
import subprocess
from pathlib import Path

import pytest
from wasmspawner_policy.build import build

PROGRAM = os.environ.get("WASMSPAWNER")
ANSWERS = Path(__file__).parents[3] / "tests" / "tables" / "policy-answers"
EVERYTHING = Path(__file__).parent / "everything"
SIZES = Path(__file__).parents[3] / "plugins" / "python" / "sizes-by-group"
RUST_SIZES = Path(__file__).parents[3] / "plugins" / "sizes-by-group"

pytestmark = pytest.mark.skipif(not PROGRAM, reason="WASMSPAWNER does not name the program")


def failed(component: Path, policy: Path, cases: Path) -> str:
    """What the program says about the cases that fail."""
    command = [str(PROGRAM), "policy", "test", component, cases, "--config", policy / "config.yaml"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else result.stdout + result.stderr


def test_every_hook_gives_its_answer(tmp_path: Path) -> None:
    build(EVERYTHING, tmp_path / "policy.wasm")
    assert not failed(tmp_path / "policy.wasm", EVERYTHING, EVERYTHING / "cases")
    assert not failed(tmp_path / "policy.wasm", EVERYTHING, ANSWERS)


def test_sizes_by_group_answers_as_the_policy_in_rust(tmp_path: Path) -> None:
    build(SIZES, tmp_path / "policy.wasm")
    assert not failed(tmp_path / "policy.wasm", SIZES, SIZES / "cases")
    assert not failed(tmp_path / "policy.wasm", RUST_SIZES, RUST_SIZES / "cases")
