"""Random sites: a profile list each, for the policy and for KubeSpawner, and what users submit to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.entities import name2codepoint
from random import Random
from typing import Any

import oracle
from overrides import override

# ruff: noqa: RUF001 - names are to have characters that look like others

NAMES = [
    "Small", "Deep learning: 1 GPU (A100)", "  R & RStudio -- beta ", "Up to 1,000 cores, shared", "Ada's lab", "🚀 GPU",
    "Ada’s lab", "GPU × 2", "R &amp; D", "½ node", "a–b", "20 °C", "Größe", "Café", "№ 5", "x_y.z", "A/B", "1,5 GB",
    "a🚀b", "日本", "C++ &#8211; &lt;new&gt;", "„fast“ …", "100 %", "Łódź", "µ-lab", "tail -", "'quoted'", "it''s",
    "A100™", "soft\u00adhyphen", "n\u00a0b", "ﬁne", "１２", "e\u0301", "a,1,2", "1,,2", "√2", "€ 5", "Ωmega", "Привет",
]  # fmt: skip
SLUGS = ["custom", "a--b", "Größe", "A B", "x.y", "1", "slug-with-dashes", "UPPER", "a/b"]
OPTIONS = ["image", "resources", "a--b", "Größe", "0", "node pool", "notes", "zz"]
CHOICES = ["small", "4 GB", "ü", "default", "0", "true", "a--b", "Unlisted", "x.y", "s'"]
# Expressions, with texts that match, that match at their beginning only, and that do not match.
PATTERNS = [
    (r"quay\.io/.+:.+", ["quay.io/a/b:1", "quay.io/x:latest"], [], ["evil.example/quay.io/a:1", "quay.io/a"]),
    (r"^quay\.io/[a-z0-9-]+$", ["quay.io/abc"], [], ["quay.io/A", "xquay.io/a", "quay.io/a/b"]),
    (r"[a-z]+", ["abc"], ["abc1", "abc/../x", "a b"], ["1", "-"]),
    (r"a|ab", ["a", "ab"], ["ax", "abb"], ["b"]),
    (r"(?:python|julia)-\d{1,2}\.\d+(?:-rc)?", ["python-3.13", "julia-1.10-rc"], ["python-3.13-x"], ["ruby-3.1"]),
    (r"(?i)lab-[0-9a-f]{4}", ["LAB-00ff", "lab-ABCD"], ["lab-00ff0"], ["lab-xyz"]),
    (r"[^\s:@]{1,20}", ["anything", "1"], ["tag:latest"], [" x", ":"]),
    (r"\w+(?:[._-]\w+)*", ["a.b_c-d"], ["a..b", "a b"], ["-a"]),
    (r"", ["anything", "x/y:1"], [], []),
    (None, ["anything", "x/y:1", "1"], [], []),
]
# References to characters, as HTML has them in texts.
REFERENCES = [
    *name2codepoint,
    "#38",
    "#39",
    "#65",
    "#x27",
    "#xe9",
    "#8211",
    "#8217",
    "#99999999",
    "nosuch",
    "#",
    "#x",
    "amp;lt",
]
HOSTILE = [
    "{value}",
    "{username}",
    "{{x}}",
    "{",
    "}{",
    "{value.__class__}",
    "{0}",
    "$(A)",
    "a\nb",
    " ",
    "x" * 513,
    "x" * 512,
]


@dataclass
class Submission:
    """What a user submits: a form, or what a program sends as `user_options`."""

    given: dict[str, Any]
    form: bool


@dataclass
class Site:
    """A profile list and the settings around it, for both sides."""

    number: int
    config: dict[str, Any]
    traits: dict[str, Any]
    submissions: list[Submission] = field(default_factory=list)
    # The profiles with their slugs and defaults, as KubeSpawner completes them.
    profiles: list[dict[str, Any]] = field(default_factory=list)


def site(seed: int, number: int) -> Site:
    """The site of this number."""
    random = Random(f"{seed}/{number}")
    config, traits = surroundings(random)
    site_command = "command" in config
    slugs: set[str] = set()
    profiles = []
    for _ in range(random.randint(1, 5)):
        made = profile(random, site_command=site_command)
        slug = made.get("slug", oracle.slug(made["display_name"]))
        if slug and slug not in slugs:
            slugs.add(slug)
            profiles.append(made)
    profiles = profiles or [{"display_name": "Only"}]
    if random.random() < 0.5:
        random.choice(profiles)["default"] = True
    made = Site(number, config | {"profile_list": profiles}, traits | {"profile_list": profiles})
    made.profiles = oracle.initialized(made.traits)
    made.submissions = list(submissions(random, made.profiles))
    return made


def surroundings(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the site itself: in the policy's words, and in KubeSpawner's."""
    config: dict[str, Any] = {}
    traits: dict[str, Any] = {}
    if random.random() < 0.5:
        config["command"] = traits["cmd"] = ["jupyterhub-singleuser"]
    if random.random() < 0.5:
        config["env"] = traits["environment"] = {"A": "site", "B": "of {username}"}
    if random.random() < 0.5:
        config["labels"] = traits["extra_labels"] = {"team": "site"}
        config["annotations"] = traits["extra_annotations"] = {"of": "site"}
    if random.random() < 0.5:
        config["node_selector"] = traits["node_selector"] = {"pool": "site"}
        config["tolerations"] = [{"key": "site", "operator": "Exists", "effect": "NoSchedule"}]
        traits["tolerations"] = [{"key": "site", "operator": "Exists", "effect": "NoSchedule"}]
    if random.random() < 0.3:
        config["volumes"] = [{"name": "home", "claim": {"name": "{pvc_name}"}}]
        config["mounts"] = [{"volume": "home", "path": "/home/{username}"}]
        traits["volumes"] = [{"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}]
        traits["volume_mounts"] = [{"name": "home", "mountPath": "/home/{username}"}]
    return config, traits


def profile(random: Random, *, site_command: bool) -> dict[str, Any]:
    """A profile, with its keys in the order in which Helm passes them on."""
    made: dict[str, Any] = {"display_name": random.choice(NAMES)}
    if random.random() < 0.3:
        made["slug"] = random.choice(SLUGS)
    if random.random() < 0.5:
        made["description"] = "A <b>text</b> & more"
    if random.random() < 0.8:
        made["kubespawner_override"] = override(random, site_command=site_command)
    if random.random() < 0.7:
        names = sorted(random.sample(OPTIONS, random.randint(1, 3)))
        made["profile_options"] = {name: option(random, site_command=site_command) for name in names}
    return made


def option(random: Random, *, site_command: bool) -> dict[str, Any]:
    """One of the `profile_options`."""
    made: dict[str, Any] = {"display_name": random.choice(["Image", "Größe & mehr"])}
    typed = random.random() < 0.6
    if not typed or random.random() < 0.8:
        names = sorted(random.sample(CHOICES, random.randint(1, 4)))
        made["choices"] = {name: choice(random, name, site_command=site_command) for name in names}
        if random.random() < 0.5:
            made["choices"][random.choice(names)]["default"] = True
    if typed:
        made["unlisted_choice"] = unlisted(random, site_command=site_command)
    elif random.random() < 0.3:
        made["unlisted_choice"] = {"enabled": False, "kubespawner_override": {"image": "{value}"}}
    return made


def choice(random: Random, name: str, *, site_command: bool) -> dict[str, Any]:
    """A listed choice."""
    made: dict[str, Any] = {"display_name": f"The {name}"}
    if random.random() < 0.8:
        made["kubespawner_override"] = override(random, site_command=site_command)
    return made


def unlisted(random: Random, *, site_command: bool) -> dict[str, Any]:
    """A choice whose value is typed."""
    made: dict[str, Any] = {"enabled": True, "display_name": "Type it"}
    if random.random() < 0.3:
        made["display_name_in_choices"] = "Something else"
    pattern = random.choice(PATTERNS)[0]
    if pattern is not None:
        made["validation_regex"] = pattern
    if random.random() < 0.5:
        made["validation_message"] = "Must be a good one"
    made["kubespawner_override"] = override(random, site_command=site_command, typed=True)
    return made


def submissions(random: Random, profiles: list[dict[str, Any]]) -> Any:
    """What users submit to these profiles: right, incomplete, wrong and hostile."""
    yield Submission({}, form=True)
    yield Submission({"profile": "no such profile"}, form=False)
    yield Submission({"profile": ""}, form=False)
    for chosen in profiles:
        for kind in (
            "listed",
            "partial",
            "listed",
            "typed",
            "typed",
            "typed",
            "wrong",
            "empty",
            "both",
            "hostile",
            "elsewhere",
        ):
            form = random.random() < 0.5
            given = {"profile": chosen["slug"]}
            if kind == "elsewhere" and not form and random.random() < 0.5:
                del given["profile"]
            for name, one in chosen.get("profile_options", {}).items():
                key = f"profile-option-{chosen['slug']}--{name}" if form else name
                given.update(submitted(random, kind, key, one))
            if kind == "elsewhere":
                given.update(of_others(random, profiles, chosen, form=form))
            yield Submission(given, form)


def submitted(random: Random, kind: str, key: str, option: dict[str, Any]) -> dict[str, str]:
    """What is submitted for an option."""
    choices = list(option.get("choices", {}))
    typed_key = f"{key}--unlisted-choice"
    unlisted = option["unlisted_choice"]
    pattern = unlisted.get("validation_regex")
    _, matching, partly, never = next(known for known in PATTERNS if known[0] == pattern)
    listed = {key: random.choice(choices)} if choices else {typed_key: random.choice(matching)}
    match kind:
        case "partial" if random.random() < 0.5:
            return {}
        case "wrong" if random.random() < 0.5:
            return {key: random.choice(["no such choice", "unlisted-choice", *["small", "0"]])}
        case "wrong":
            return {typed_key: random.choice([*never, *partly, "x"])}
        case "empty":
            return random.choice([{key: ""}, {typed_key: ""}, {key: "", typed_key: ""}, listed | {typed_key: ""}])
        case "both":
            return {key: random.choice([*choices, "unlisted-choice"]), typed_key: random.choice(matching)}
        case "typed" if unlisted["enabled"]:
            return {typed_key: random.choice(matching * 3 + partly)}
        case "hostile" if unlisted["enabled"]:
            return {typed_key: random.choice([*HOSTILE, random.choice(matching) + random.choice(HOSTILE)])}
    return listed


def of_others(random: Random, profiles: list[dict[str, Any]], chosen: dict[str, Any], *, form: bool) -> dict[str, Any]:
    """Fields of another profile, which a form submits, or keys that no profile has."""
    other = random.choice(profiles)
    if not form:
        return {"garbage": "x"} if random.random() < 0.5 else {}
    found = {}
    for name, one in other.get("profile_options", {}).items():
        if other is not chosen and (choices := list(one.get("choices", {}))):
            found[f"profile-option-{other['slug']}--{name}"] = random.choice([*choices, "no such choice"])
    return found


def matches(pattern: str | None, text: str) -> bool:
    """Whether the whole text matches, which is what the policy asks for."""
    return not pattern or re.fullmatch(pattern, text) is not None
