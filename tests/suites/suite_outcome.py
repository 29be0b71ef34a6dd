"""What a suite has done: its exit code, its time, and what its output says about tests."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from plans import Suite

# What nextest, cargo test and pytest print at their ends.
PASSED = re.compile(
    r"^ *Summary \[.*\] *\d+ tests? run: (\d+) passed|^test result: ok\. (\d+) passed|^[= ]*(\d+) passed.* in [\d.]+s"
)
JUNIT = re.compile(r"^==> The times of the tests are in (.+)$")
BUSY = re.compile(r"^==> The processors were busy for ([\d.]+) and ([\d.]+) seconds$")
# Reasons of failures: a panic of a Rust test, and a line of pytest's summary.
PANIC = re.compile(r"^\s*thread '(.+)' .*panicked at (.+):$")
OF_PYTEST = re.compile(r"^(?:FAILED|ERROR) .+")
REASON_LINES = 8  # of a panic


@dataclass
class Outcome:
    """A suite that has ended."""

    suite: Suite
    log: Path
    seconds: float
    code: int

    def line(self) -> str:
        """One line, as soon as it has ended."""
        word = "failed" if self.code else "ok"
        return f"{word}: {self.suite.name}, {self.seconds:.0f} s, {self.passed()} tests"

    def passed(self) -> int:
        """The number of tests that passed."""
        found = (PASSED.match(line) for line in self.lines)
        return sum(int(next(filter(None, match.groups()))) for match in found if match)

    def busy(self) -> float:
        """The seconds that it kept processors busy, those of all its processes together."""
        found = (BUSY.match(line) for line in self.lines)
        return sum(float(part) for match in found if match for part in match.groups())

    def last_lines(self, count: int) -> str:
        """The end of the output."""
        return "\n".join(self.lines[-count:])

    def reasons(self) -> Iterator[str]:
        """The reasons why tests have failed; none of a suite that passed, because tests of panics print some, too."""
        if not self.code:
            return
        for at, line in enumerate(self.lines):
            if match := PANIC.match(line):
                yield f"{match[1]}: {match[2]}"
                for said in self.lines[at + 1 : at + 1 + REASON_LINES]:
                    if not said.strip() or said.strip().startswith("note: "):
                        break
                    yield f"    {said.strip()[:2000]}"
            elif OF_PYTEST.match(line):
                yield line[:400]

    def skipped(self) -> set[str]:
        """The lines that say what was skipped, and why."""
        said = [text.strip() for text in [*self.lines, *self.programs_said] if text.strip().startswith("skipped: ")]
        return set(said)

    def rows(self) -> Iterator[str]:
        """The suite in the table of times, and the programs of its tests."""
        yield f"{self.seconds:8.0f} {self.suite.budget:8d} {self.busy():8.0f} {self.passed():7d}  {self.suite.name}"
        for name, seconds in self.programs.items():
            yield f"{seconds:8.0f} {'':>25}      {name}"

    def warnings(self) -> Iterator[str]:
        """What took longer than its budget."""
        name, budget = self.suite.name, self.suite.budget
        if self.seconds > budget:
            yield f"warning: {name} took {self.seconds:.0f} s; its budget in tests/suites/suites.toml is {budget} s"

    @cached_property
    def lines(self) -> list[str]:
        """The output."""
        return self.log.read_text(errors="replace").splitlines()

    @cached_property
    def report(self) -> list[xml.Element]:
        """The programs in nextest's report, if the output names one."""
        files = [match[1] for match in map(JUNIT.match, self.lines) if match]
        return [program for file in files for program in xml.parse(file).getroot().iter("testsuite")]

    @cached_property
    def programs(self) -> Counter[str]:
        """The seconds of all tests of each program, the longest first. Tests run beside each other."""
        seconds: Counter[str] = Counter()
        for program in self.report:
            seconds[program.get("name", "")] += sum(float(test.get("time", 0)) for test in program.iter("testcase"))
        return Counter(dict(seconds.most_common()))

    @property
    def programs_said(self) -> Iterator[str]:
        """The lines that tests have printed."""
        for program in self.report:
            for output in program.iter("system-out"):
                yield from (output.text or "").splitlines()
