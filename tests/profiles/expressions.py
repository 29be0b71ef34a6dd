"""Random regular expressions, and texts to try them on."""

from __future__ import annotations

import re
from random import Random

ATOMS = [
    "a", "b", "1", "-", "/", ".", r"\.", r"\d", r"\w", r"\s", r"\S", r"\W", r"\-", r"\/", "[a-c]", "[^a]", "[a-]", "[.-]",
    "[]a]", "[^]a]", r"[\w.]", r"[^\s/]", "[a^]", "[[:alpha:]]", "[a&&b]", "[a--b]", "[a~~b]", "[[a]]", r"\b", r"\B", r"\A",
    "^", "$", "(?i:A)", "(?:)", r"\x61", r"\<", r"\>", r"\z", "{", "}", r"\n", "(?s:.)", "(?P<n>a)", "(?i)a", " ", "_", "%",
]  # fmt: skip
REPEATS = ["", "", "", "*", "+", "?", "*?", "+?", "{2}", "{1,2}", "{1,}", "{,2}", "{0}", "*+", "?+", "{2}{2}"]
LETTERS = "ab1-/. _A&~[]{}<>ä"


def expression(random: Random, depth: int = 2) -> str:
    """An expression, which Python may refuse."""
    parts = []
    for _ in range(random.randint(1, 4)):
        if depth and random.random() < 0.3:
            atom = random.choice(["({})", "(?:{})"]).format(expression(random, depth - 1))
        else:
            atom = random.choice(ATOMS)
        parts.append(atom + random.choice(REPEATS))
    return "".join(parts) + (f"|{expression(random, depth - 1)}" if depth and random.random() < 0.2 else "")


def valid(random: Random) -> str:
    """An expression that Python takes."""
    while True:
        made = expression(random)
        try:
            re.compile(made)
        except (re.error, OverflowError):
            continue
        return made


def texts(random: Random, number: int) -> list[str]:
    """Short texts, of which some match something."""
    return ["".join(random.choices(LETTERS, k=random.randint(1, 5))) for _ in range(number)]
