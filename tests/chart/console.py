"""Sessions with a shell, as pages show them: commands after `$ `, and what they print.

Ages differ from one run to the next, and so do names that Kubernetes or the service have made up. A made-up name of the
page stands for one name of the run, everywhere on the page.
"""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"(?ms)^```(yaml|console)\n(.*?)^```$")
# The first line of a block of YAML that readers are to save as a file.
FILE = re.compile(r"# (\S+\.yaml)\n")
AGE = re.compile(r"(\d+[dhms])+")
# A part of a uid, or the four letters and digits of the service, at the end of a name.
MADE_UP = re.compile(r"([a-z0-9-]+-)([0-9a-f]{8}|[bcdfghjklmnpqrstvwxz2456789]{4})(-credentials)?")
BETWEEN = re.compile(r'([\s"/:,=]+)')
# Newer versions of kubectl say more.
NAMESPACE_OF_DELETED = re.compile(r'(?m)(" deleted) from \S+ namespace$')
PATIENCE = 120.0  # seconds


@dataclass
class Session:
    """A session in a folder. `replaced` gives what stands in this run for a text of the page."""

    folder: Path
    environment: dict[str, str]
    replaced: dict[str, str] = field(default_factory=dict)
    made_up: dict[str, str] = field(default_factory=dict)

    def follow(self, page: str) -> int:
        """Save the page's files and run its commands. Returns how many commands there are. Raises `AssertionError` if one
        prints something else than the page says."""
        commands = 0
        for kind, text in BLOCK.findall(page):
            if kind == "console":
                steps = [step for step in re.split(r"(?m)^\$ ", text) if step]
                for step in steps:
                    self._run(*step.partition("\n")[::2])
                commands += len(steps)
            elif name := FILE.match(text):
                (self.folder / name[1]).write_text(self._here(text))
        return commands

    def _run(self, command: str, expected: str) -> None:
        ended = subprocess.run(
            ["sh", "-c", f"exec 2>&1\n{self._here(command)}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        )
        printed = NAMESPACE_OF_DELETED.sub(r"\1", ended.stdout)
        for written, here in self.replaced.items():
            printed = printed.replace(here, written)
        assert self._is_same(expected, printed), f"$ {command}\n{printed}\nThe page says:\n{expected}"

    def _here(self, text: str) -> str:
        """What a text of the page means in this run."""
        for written, here in (self.replaced | self.made_up).items():
            text = text.replace(written, here)
        return text

    def _is_same(self, expected: str, printed: str) -> bool:
        wanted, found = BETWEEN.split(expected.strip()), BETWEEN.split(printed.strip())
        return len(wanted) == len(found) and all(map(self._is_same_word, wanted, found))

    def _is_same_word(self, wanted: str, found: str) -> bool:
        if wanted.isspace() and found.isspace():
            return ("\n" in wanted) == ("\n" in found)
        if AGE.fullmatch(wanted) and AGE.fullmatch(found):
            return True
        one, other = MADE_UP.fullmatch(wanted), MADE_UP.fullmatch(found)
        if not (one and other and one[1] == other[1] and one[3] == other[3]):
            return wanted == found
        written, here = one[1] + one[2], other[1] + other[2]
        if written not in self.made_up and here not in self.made_up.values():
            self.made_up[written] = here
        return self.made_up.get(written) == here
