"""The plans and suites of suites.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).resolve().parent / "suites.toml"


@dataclass(frozen=True)
class Suite:
    """A command with its budget."""

    name: str
    run: str
    #: Seconds on two cores, with caches filled.
    budget: int
    #: If not 0, the suite is left out where fewer minutes are left of the longest run.
    minutes: int = 0


@dataclass(frozen=True)
class Plans:
    """All plans. A plan is a list of stages, a stage a list of lanes, and a lane a list of suites."""

    suites: dict[str, Suite]
    plans: dict[str, list[list[list[Suite]]]]
    #: Minutes within which a run has to end.
    longest: int

    @classmethod
    def read(cls, file: Path = FILE) -> Plans:
        """Read the file. Raises `KeyError` or `TypeError` for a suite or key that is unknown."""
        found = tomllib.loads(file.read_text())
        suites = {name: Suite(name, **about) for name, about in found["suites"].items()}
        plans = {
            name: [[[suites[suite] for suite in lane] for lane in stage] for stage in stages]
            for name, stages in found["plans"].items()
        }
        return cls(suites, plans, found["longest"])

    def text(self) -> str:
        """The plans, and the suites with their commands."""
        lines = []
        for name, stages in self.plans.items():
            lines.append(f"plan {name}:")
            for stage in stages:
                lanes = [" ".join(suite.name for suite in lane) for lane in stage]
                lines.append(f"    {' | '.join(lanes)}")
        lines += [f"suite {suite.name}: {suite.run}" for suite in self.suites.values()]
        return "".join(f"{line}\n" for line in lines)
