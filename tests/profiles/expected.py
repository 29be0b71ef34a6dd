"""What the policy is expected to answer: what KubeSpawner answers, with the differences that `plugins/default/README.md`
explains. Each has a name here, and is counted, so that one that no longer occurs is noticed."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import oracle
from lists import Site, Submission, matches
from oracle import Answer

DIFFERENCES = {
    "options without a profile": "they are those of the default profile, and are checked like any others",
    "unknown key": "a key that no option has is refused",
    "whole text": "the whole typed text must match",
    "long text": "a typed text has at most 512 characters",
    "one line": "a typed text has no control characters",
    "blank text": "a typed text is not blank",
    "no image": "an image with a typed part has only the characters of images",
    "typed braces": "a typed text is never a template",
    "reference for text": "a variable may get its value from a Secret where a text was before",
    "guarantee alone": "an extended resource whose limit is taken away has no guarantee either; Kubernetes wants both",
    "arguments alone": "`args` without any `cmd` are passed on, because the service may have a command",
    "working directory": "templates are expanded in `working_dir`, also in that of a profile",
}
# Stands for a typed text of which KubeSpawner would make something else.
STAND_IN = "TYPEDTEXT"
# What KubeSpawner says where a reference replaces a text.
CANNOT_REPLACE_TEXT = "does not support item assignment"
# The characters of images, as `unlisted.rs` checks them.
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")


@dataclass
class Typed:
    """A typed text: its key, the expression for it, and the image that it is a part of."""

    key: str
    text: str
    pattern: str | None
    image: str


@dataclass
class Expectation:
    """A lab, or a refusal whose errors match an expression."""

    lab: dict[str, Any] | None = None
    profile: str | None = None
    refusal: str | None = None
    # What KubeSpawner says, for the one who reads the report.
    why: str | None = None


def expectation(site: Site, submission: Submission, used: Counter[str]) -> Expectation:
    """What the policy is expected to answer; counts the differences in it."""
    submission = with_profile(site, submission, used)
    prefix = f"profile-option-{submission.given.get('profile')}--" if submission.form else ""
    options = options_of(site, submission)
    if any(unknown(submission, options)):
        used["unknown key"] += 1
        return Expectation(refusal="is not a field of this form")
    texts = typed(submission, options, prefix)
    answer = asked(site.traits, submission, texts)
    reference = CANNOT_REPLACE_TEXT in (answer.refused or "")
    if reference:
        answer = asked(with_references_as_texts(site.traits), submission, texts)
    if answer.lab is None:
        return Expectation(refusal=".", why=answer.refused)
    if refusals := [refusal for typed in texts if (refusal := refused_text(typed, used))]:
        # The policy may name another typed text first.
        return Expectation(refusal="|".join([*refusals, "gives no image"]))
    used["reference for text"] += reference
    used["typed braces"] += any_braces(texts)
    return Expectation(adapted(answer, used), answer.profile)


def asked(traits: dict[str, Any], submission: Submission, texts: list[Typed]) -> Answer:
    """KubeSpawner's answer, for which braces are nothing special."""
    if any_braces(texts):
        return without_typed_braces(traits, submission, texts)
    return oracle.answer(traits, "ada", submission.given, form=submission.form)


def any_braces(texts: list[Typed]) -> bool:
    """Whether a typed text has a brace."""
    return any("{" in typed.text or "}" in typed.text for typed in texts)


def adapted(answer: Answer, used: Counter[str]) -> dict[str, Any]:
    """The lab, with what the policy does in another way."""
    lab = dict(answer.lab or {})
    if lab.pop("guaranteed").keys() - lab["extended"].keys():
        used["guarantee alone"] += 1
    lab["env"] = {
        name: json.loads(bytes.fromhex(text[5:])) if isinstance(text, str) and text.startswith("from ") else text
        for name, text in lab["env"].items()
    }
    if answer.left_out and not lab["args"]:
        used["arguments alone"] += 1
        lab["args"] = answer.left_out
    if "{username}" in (lab["working_dir"] or ""):
        used["working directory"] += 1
        lab["working_dir"] = lab["working_dir"].replace("{username}", "ada")
    return lab


def with_profile(site: Site, submission: Submission, used: Counter[str]) -> Submission:
    """KubeSpawner ignores a form without a profile, and does not check the options of a program that names none."""
    if submission.given.get("profile") or not any(submission.given.values()):
        return submission
    used["options without a profile"] += 1
    default = next(profile for profile in site.profiles if profile.get("default"))
    return Submission(submission.given | {"profile": default["slug"]}, submission.form)


def options_of(site: Site, submission: Submission) -> dict[str, Any]:
    """The options of the chosen profile; none if there is no such profile."""
    chosen = (profile for profile in site.profiles if profile["slug"] == submission.given.get("profile"))
    return next(chosen, {}).get("profile_options", {})


def unknown(submission: Submission, options: dict[str, Any]) -> list[str]:
    """The keys of a program that are none of the chosen profile's."""
    known = {"profile", *options, *(f"{name}--unlisted-choice" for name in options)}
    return [] if submission.form else [key for key in submission.given if key not in known]


def typed(submission: Submission, options: dict[str, Any], prefix: str) -> list[Typed]:
    """The typed texts."""
    texts = []
    for name, option in options.items():
        key = f"{prefix}{name}--unlisted-choice"
        unlisted = option["unlisted_choice"]
        if unlisted["enabled"] and (text := submission.given.get(key)):
            image = unlisted["kubespawner_override"].get("image", "")
            texts.append(Typed(key, text, unlisted.get("validation_regex"), image))
    return texts


def refused_text(typed: Typed, used: Counter[str]) -> str | None:
    """The error for a typed text that KubeSpawner accepts."""
    if not typed.text.strip():
        found, refusal = "blank text", "must not be empty"
    elif len(typed.text) > 512:
        found, refusal = "long text", "longer than 512"
    elif any(not char.isprintable() for char in typed.text):
        found, refusal = "one line", "must be one line"
    elif not matches(typed.pattern, typed.text):
        found, refusal = "whole text", "must match|Must be a good one"
    elif typed.image and not IMAGE.fullmatch(typed.image.replace("{value}", typed.text)):
        found, refusal = "no image", "gives no image"
    else:
        return None
    used[found] += 1
    return refusal


def without_typed_braces(traits: dict[str, Any], submission: Submission, texts: list[Typed]) -> Answer:
    """KubeSpawner's answer to harmless texts, with the real ones put into it afterwards."""
    harmless = {typed.key: f"{STAND_IN}{number}x" for number, typed in enumerate(texts)}
    traits = copy.deepcopy(traits)
    for profile in traits["profile_list"]:
        for option in profile.get("profile_options", {}).values():
            option.get("unlisted_choice", {}).pop("validation_regex", None)
    answer = oracle.answer(traits, "ada", submission.given | harmless, form=submission.form)
    for typed in texts:
        answer.lab = replaced(answer.lab, harmless[typed.key], typed.text)
        answer.left_out = replaced(answer.left_out, harmless[typed.key], typed.text)
    return answer


def replaced(value: Any, old: str, new: str) -> Any:
    """The value with this text replaced everywhere in it."""
    match value:
        case str():
            return value.replace(old, new)
        case dict():
            return {key: replaced(inside, old, new) for key, inside in value.items()}
        case list():
            return [replaced(inside, old, new) for inside in value]
        case tuple():
            return tuple(replaced(inside, old, new) for inside in value)
    return value


def with_references_as_texts(value: Any) -> Any:
    """Settings with texts in place of references, which KubeSpawner does not write where a text was."""
    match value:
        case {"valueFrom": source}:
            return "from " + json.dumps(source).encode().hex()
        case dict():
            return {key: with_references_as_texts(inside) for key, inside in value.items()}
        case list():
            return [with_references_as_texts(inside) for inside in value]
    return value
