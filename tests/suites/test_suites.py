"""The runner of the suites: what it counts, reports and ends."""

import re
import time

import pytest
from plans import Plans, Suite
from run import Run, main, summary
from suite_outcome import Outcome

import toolchain

FOREVER = "tail -f /dev/null"


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def outcome(tmp_path, text, code=0, **about):
    log = tmp_path / "log"
    log.write_text(text)
    return Outcome(Suite(**{"name": "s", "run": "", "budget": 10} | about), log, 12.0, code)


def names(run):
    return {outcome.suite.name: outcome.code for outcome in run.outcomes}


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        ("     Summary [  53.361s] 1252 tests run: 1252 passed (3 slow), 0 skipped", 1252),
        ("     Summary [   0.012s] 1 test run: 1 passed, 30 skipped", 1),
        ("test result: ok. 24 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.08s", 24),
        ("503 passed, 2 warnings in 83.10s (0:01:23)", 503),
        ("======= 18 passed in 3.40s =======", 18),
        ("the text says that 5 passed", 0),
    ],
)
def test_tests_are_counted_as_their_runners_say(tmp_path, line, passed):
    assert outcome(tmp_path, f"before\n{line}\nafter\n").passed() == passed


def test_programs_and_what_they_skipped_are_read_from_the_report(tmp_path):
    report = tmp_path / "junit.xml"
    report.write_text(
        '<testsuites><testsuite name="tests::api">'
        '<testcase name="a" time="50"/><testcase name="b" time="15"><system-out>\nskipped: no cluster\n</system-out></testcase>'
        "</testsuite></testsuites>"
    )
    done = outcome(tmp_path, f"skipped: a browser\n==> The times of the tests are in {report}\n")
    assert done.programs == {"tests::api": 65}
    assert done.skipped() == {"skipped: a browser", "skipped: no cluster"}


OF_BOTH = """
        PASS [   0.835s] (1/2) tests::names one
        FAIL [  78.095s] (2/2) tests::names two
  stderr ───
    thread 'two' (4711) panicked at tests/tests/names.rs:7:5:
    assertion `left == right` failed
      left: 1
    note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
FAILED tests/e2e/test_hub.py::test_three - assert 500 == 200
"""


def test_the_end_says_why_tests_failed(tmp_path):
    assert list(outcome(tmp_path, OF_BOTH, code=1).reasons()) == [
        "two: tests/tests/names.rs:7:5",
        "    assertion `left == right` failed",
        "    left: 1",
        "FAILED tests/e2e/test_hub.py::test_three - assert 500 == 200",
    ]
    assert list(outcome(tmp_path, OF_BOTH).reasons()) == []


def test_the_time_of_the_processors_is_that_of_all_processes_of_a_suite(run):
    run.stage(
        [[Suite("computes", "bash -c 'for ((i = 0; i < 100000; i++)); do :; done'", 9), Suite("waits", "true", 9)]], 85
    )
    computes, waits = run.outcomes
    assert computes.busy() > waits.busy()


def test_what_takes_longer_than_its_budget_is_said(tmp_path):
    assert list(outcome(tmp_path, "", budget=11).warnings()) == [
        "warning: s took 12 s; its budget in tests/suites/suites.toml is 11 s"
    ]
    assert list(outcome(tmp_path, "", budget=12).warnings()) == []


def test_a_failure_ends_all_that_runs_and_nothing_follows(run, capsys):
    fails = Suite("fails", "echo the reason; exit 3", 1)
    began = time.monotonic()
    run.stage([[Suite("waits", FOREVER, 1), Suite("never", "true", 1)], [fails, Suite("next", "true", 1)]], 85)
    assert time.monotonic() - began < 30, "it has waited for the suite that never ends"
    assert names(run) == {"fails": 3}
    said = capsys.readouterr().out
    assert "failed: fails" in said
    assert "the reason" in said
    assert "==> never" not in said
    assert "==> next" not in said


def test_a_suite_that_is_ended_may_clean_up(run, tmp_path):
    cleans = f"trap 'touch {tmp_path}/clean; exit' TERM; touch {tmp_path}/ready; while :; do :; done"
    fails = f"until [ -e {tmp_path}/ready ]; do :; done; false"
    run.stage([[Suite("cleans", cleans, 1)], [Suite("fails", fails, 1)]], 85)
    assert (tmp_path / "clean").exists()


def test_a_suite_that_ignores_the_request_to_end_is_killed(run, monkeypatch):
    monkeypatch.setattr("run.GRACE", 0.5)
    deaf = Suite("deaf", f"trap '' TERM; {FOREVER}; {FOREVER}; {FOREVER}", 1)
    run.stage([[deaf], [Suite("fails", "false", 1)]], 85)
    assert run.children == {}


def test_lanes_run_beside_each_other(run, tmp_path):
    def other(mine, theirs):
        return f"touch {tmp_path}/{mine}; until [ -e {tmp_path}/{theirs} ]; do :; done"

    run.stage([[Suite("a", other("a", "b"), 9)], [Suite("b", other("b", "a"), 9)]], 85)
    assert names(run) == {"a": 0, "b": 0}
    assert [row.split()[-1] for row in summary(run)] == ["suite", *names(run)]


def test_a_suite_for_which_no_time_is_left_is_skipped_and_said(run, capsys):
    run.began -= 60 * 70
    run.stage([[Suite("long", "false", 1, minutes=20), Suite("short", "true", 1, minutes=10)]], 85)
    assert names(run) == {"short": 0}
    assert "skipped: long, which may take 20 minutes; 70 are over" in capsys.readouterr().out


def test_the_plans_run_every_suite_and_every_command_exists():
    plans = Plans.read()
    targets = set(re.findall(r"(?m)^([a-z0-9-]+):.*##", (toolchain.ROOT / "Makefile").read_text()))
    steps = set(re.findall(r"(?m)^([a-z]+)\(\) \{", (toolchain.ROOT / ".ci/run").read_text()))
    planned = {suite.name for stages in plans.plans.values() for stage in stages for lane in stage for suite in lane}
    assert planned == set(plans.suites)
    for suite in plans.suites.values():
        for made in re.findall(r"make ([a-z0-9-]+)", suite.run):
            assert made in targets, suite
        for step in re.findall(r"\.ci/run ([a-z]+)", suite.run):
            assert step in steps, suite
    in_both = {suite.name for stage in plans.plans["test"] for lane in stage for suite in lane}
    in_ci = {suite.name for stage in plans.plans["ci"] for lane in stage for suite in lane}
    assert in_both <= in_ci, "what `make test` runs, CI runs, too"


def test_an_unknown_plan_is_refused_with_those_that_exist(capsys):
    assert main(["nightly"]) == 2
    said = capsys.readouterr().out
    assert "nightly: no such plan or suite" in said
    assert "plan ci:" in said
