"""A `validation_regex` means for the default policy what it means in Python, or is refused before anybody uses it."""

from __future__ import annotations

import re
import warnings
from random import Random

import expressions
import policy
from test_profiles import SEED

EXPRESSIONS = 3000


def site(pattern, texts):
    """What the policy is asked about texts for this expression."""
    override = {"environment": {"A": "{value}"}}
    unlisted = {"enabled": True, "validation_regex": pattern, "kubespawner_override": override}
    profile = {"display_name": "P", "profile_options": {"o": {"unlisted_choice": unlisted}}}
    submissions = [{"o--unlisted-choice": text} for text in texts]
    return {"config": {"profile_list": [profile]}, "user": "ada", "submissions": submissions}


def test_expressions_match_what_they_match_in_python():
    random = Random(f"{SEED}/expressions")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        patterns = [expressions.valid(random) for _ in range(EXPRESSIONS)]
        texts = [[text for text in expressions.texts(random, 20) if text.strip()] for _ in patterns]
        answers = policy.native([site(*asked) for asked in zip(patterns, texts, strict=True)])
        compared = matched = refused = 0
        for pattern, tried, answer in zip(patterns, texts, answers, strict=True):
            if "problems" in answer:
                assert "/validation_regex: `" in answer["problems"][0], answer
                refused += 1
                continue
            for text, given in zip(tried, answer["answers"], strict=True):
                matches = re.fullmatch(pattern, text, re.ASCII) is not None
                assert ("lab" in given) == matches, (pattern, text)
                compared += 1
                matched += matches
    print(f"{EXPRESSIONS - refused} expressions, {refused} refused; {matched} of {compared} texts match")
    assert matched > 1000
