#!/usr/bin/env python3
"""Runs the suites of a plan, some beside each other, and says how long each took.

    run.py PLAN        run the suites of a plan in suites.toml: `test` or `ci`
    run.py SUITE...    run these suites, one after the other
    run.py list        print the plans and suites

The first suite that fails ends the others, and the end of its output is printed; the last lines of all say why tests have
failed. The whole output of every suite is kept in the folder `suites` beside what cargo builds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy/local"))

from plans import Plans, Suite
from suite_outcome import Outcome

import toolchain

NEWS_EVERY = 60.0  # seconds
LAST_LINES = 200  # of the output of a suite that failed
GRACE = 30.0  # seconds for a suite to end what it has started
# pytest cuts the reasons of failures at the width of the terminal. Bash prints the last line of a suite in this format.
SURROUNDINGS = {"COLUMNS": "400", "TIMEFORMAT": "==> The processors were busy for %U and %S seconds"}


@dataclass
class Run:
    """The suites that are running and those that have ended."""

    logs: Path
    began: float = field(default_factory=time.monotonic)
    children: dict[str, subprocess.Popen] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stage(self, lanes: list[list[Suite]], longest: int) -> None:
        """Run the lanes of a stage beside each other, until all have ended."""
        threads = [threading.Thread(target=self.whole_lane, args=(lane, longest)) for lane in lanes]
        for thread in threads:
            thread.start()
        news = time.monotonic() + NEWS_EVERY
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.2)
            if self.stopping.is_set():
                self.end_children()
            elif time.monotonic() > news:
                news += NEWS_EVERY
                self.say(f"    running: {', '.join(sorted(self.children))}")

    def whole_lane(self, suites: list[Suite], longest: int) -> None:
        """Run a lane. A mistake in this program ends the others, too."""
        try:
            self.lane(suites, longest)
        except BaseException:
            self.stopping.set()
            raise

    def lane(self, suites: list[Suite], longest: int) -> None:
        """Run suites one after the other, as long as none has failed anywhere."""
        for suite in suites:
            if self.stopping.is_set():
                return
            if suite.minutes and self.minutes() + suite.minutes > longest:
                self.say(
                    f"skipped: {suite.name}, which may take {suite.minutes} minutes; {self.minutes():.0f} are over"
                )
                continue
            outcome = self.suite(suite)
            with self.lock:
                if self.stopping.is_set():  # ended from outside
                    return
                self.outcomes.append(outcome)
                if outcome.code:
                    self.stopping.set()
            self.say(outcome.line())
            if outcome.code:
                self.say(outcome.last_lines(LAST_LINES))

    def suite(self, suite: Suite) -> Outcome:
        """Run a suite in a session of its own, so that it ends with all that it has started."""
        self.say(f"==> {suite.name}")
        log, began = self.logs / f"{suite.name}.log", time.monotonic()
        with open(log, "wb") as output:
            child = subprocess.Popen(
                ["bash", "-c", 'trap : TERM; time bash -c "$1"', "suite", suite.run],
                cwd=toolchain.ROOT,
                env=os.environ | SURROUNDINGS,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        with self.lock:
            self.children[suite.name] = child
        code = child.wait()
        with self.lock:
            del self.children[suite.name]
        return Outcome(suite, log, time.monotonic() - began, code)

    def end_children(self) -> None:
        """Ask all that run to end, and kill what does not."""
        with self.lock:
            children = list(self.children.values())
        for how in (signal.SIGTERM, signal.SIGKILL):
            for child in children:
                if child.poll() is None or how is signal.SIGKILL:
                    signal_session(child.pid, how)
            give_up = time.monotonic() + GRACE
            for child in children:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(max(0.0, give_up - time.monotonic()))

    def minutes(self) -> float:
        """The minutes since the start."""
        return (time.monotonic() - self.began) / 60

    def say(self, text: str) -> None:
        """Print, each line after the minutes and seconds since the start."""
        seconds = int(time.monotonic() - self.began)
        print(f"{seconds // 60:3d}:{seconds % 60:02d}  {text}", flush=True)


def signal_session(leader: int, how: signal.Signals) -> None:
    """Signal the processes of a session's first group."""
    with suppress(ProcessLookupError):
        os.killpg(leader, how)


def summary(run: Run) -> Iterator[str]:
    """What is printed at the end."""
    yield f"{'seconds':>8} {'budget':>8} {'busy':>8} {'tests':>7}  suite"
    for outcome in run.outcomes:
        yield from outcome.rows()
    yield from sorted({reason for outcome in run.outcomes for reason in outcome.skipped()})
    for outcome in run.outcomes:
        yield from outcome.warnings()
    for outcome in run.outcomes:
        yield from outcome.reasons()


def main(arguments: list[str]) -> int:
    """Run what the arguments name."""
    plans = Plans.read()
    match arguments:
        case ["list"]:
            print(plans.text(), end="")
            return 0
        case [name] if name in plans.plans:
            stages, longest = plans.plans[name], plans.longest
        case [_, *_] if unknown := [name for name in arguments if name not in plans.suites]:
            print(f"error: {', '.join(unknown)}: no such plan or suite; there are\n{plans.text()}", end="")
            return 2
        case [_, *_]:
            name, longest = "suites", plans.longest
            stages = [[[plans.suites[suite] for suite in arguments]]]
        case _:
            print(__doc__)
            return 2
    logs = toolchain.target_dir() / "suites"
    logs.mkdir(parents=True, exist_ok=True)
    run = Run(logs)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: run.stopping.set())
    for lanes in stages:
        if not run.stopping.is_set():
            run.stage(lanes, longest)
    print("", *summary(run), sep="\n")
    failed = [outcome.suite.name for outcome in run.outcomes if outcome.code]
    if failed or run.stopping.is_set():
        print(f"error: {', '.join(failed) or 'stopped'}; the outputs are in {logs}")
        return 1
    passed = sum(outcome.passed() for outcome in run.outcomes)
    print(f"The run took {run.minutes():.0f} minutes; the outputs are in {logs}")
    print(f"{name}: {passed} passed, 0 failed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
