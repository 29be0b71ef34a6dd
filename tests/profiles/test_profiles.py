"""Profile lists mean for the default policy what they mean for KubeSpawner."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from html.parser import HTMLParser

import jinja2
import lab
import lists
import oracle
import policy
import pytest
from expected import DIFFERENCES, expectation

SEED = int(os.environ.get("PROFILE_SEED") or 1)
LISTS = int(os.environ.get("PROFILE_LISTS") or 240)
# A component is prepared for its configuration, which takes some seconds for each.
COMPONENTS = 4
# Patterns of `lists.PATTERNS` that are not among those which all SDKs and browsers read alike (`wit/README.md`).
ONLY_PYTHON = {r"^quay\.io/[a-z0-9-]+$", r"(?i)lab-[0-9a-f]{4}", r"[^\s:@]{1,20}", r"\w+(?:[._-]\w+)*"}


@pytest.fixture(scope="module")
def sites():
    """The sites with the policy's answers; where the policy cannot make a slug, the site has KubeSpawner's written."""
    sites = [lists.site(SEED, number) for number in range(LISTS)]
    answers = policy.native([policy.question(site) for site in sites])
    written = 0
    for site, answer in zip(sites, answers, strict=True):
        for problem in answer.get("problems", []):
            found = re.fullmatch(r"/profile_list/(\d+)/slug: cannot be made of .+; write one", problem)
            assert found, f"site {site.number}: {problem}"
            profile = site.config["profile_list"][int(found[1])]
            profile["slug"] = oracle.slug(profile["display_name"])
            written += 1
    submissions = sum(len(site.submissions) for site in sites)
    print(f"\nPROFILE_SEED={SEED}: {LISTS} lists, {submissions} submissions; {written} slugs had to be written")
    return list(zip(sites, policy.native([policy.question(site) for site in sites]), strict=True))


def test_submissions_give_the_labs_of_kubespawner(sites):
    used, outcomes, wrong = Counter(), Counter(), []
    for site, answers in sites:
        assert "answers" in answers, (site.config, answers)
        for submission, answer in zip(site.submissions, answers["answers"], strict=True):
            expected = expectation(site, submission, used)
            if found := differences(site, expected, answer):
                given = {"site": site.number, "submission": submission.given, "form": submission.form}
                chosen = [one for one in site.profiles if one["slug"] == submission.given.get("profile")]
                wrong.append({**given, "wrong": found, "kubespawner": expected.why, "profile": chosen})
            outcomes["refused" if expected.refusal else "a lab"] += 1
    print(dict(outcomes), dict(used))
    report = "\n".join(json.dumps(one, default=str, ensure_ascii=False) for one in wrong[:5])
    assert not wrong, f"PROFILE_SEED={SEED}: {len(wrong)} wrong\n{report}"
    if SEED == 1:
        assert not DIFFERENCES.keys() - used.keys(), "these differences no longer occur"


def differences(site, expected, answer):
    """What is not as expected."""
    if expected.refusal:
        errors = answer.get("errors", ["a lab"])
        return [] if any(re.search(expected.refusal, error) for error in errors) and "lab" not in answer else errors
    if "errors" in answer:
        return answer["errors"]
    found = lab.of_policy(answer, site.config)
    wrong = {key: (value, expected.lab[key]) for key, value in found.items() if value != expected.lab[key]}
    if answer["options"]["profile"] != expected.profile:
        wrong["profile"] = (answer["options"]["profile"], expected.profile)
    return wrong


def test_the_form_has_the_choices_of_kubespawner(sites):
    compared = 0
    for site, answers in sites:
        try:
            page = Form(oracle.form(site.traits))
        except jinja2.UndefinedError:
            continue  # KubeSpawner has no form for an option that can only be typed
        fields = {field["name"]: field for field in answers["fields"]}
        shown = {name: [list(pair) for pair in choices] for name, choices in page.choices.items()}
        asked = {name: field["choices"] for name, field in fields.items() if "choices" in field and name != "profile"}
        assert asked == shown, site.config
        assert [value for value, _ in fields["profile"]["choices"]] == page.profiles, site.config
        defaults = {name: field["default"] for name, field in fields.items() if "choices" in field}
        assert defaults == page.chosen, site.config
        typed = {name: field["pattern"] for name, field in fields.items() if "pattern" in field}
        # A pattern that only Python reads is not in the page; the policy checks it when the form is submitted.
        in_page = {name: None if text in ONLY_PYTHON else text for name, text in page.patterns.items()}
        assert typed == in_page, site.config
        compared += 1
    print(f"{compared} forms")
    assert compared


class Form(HTMLParser):
    """The fields of KubeSpawner's form."""

    def __init__(self, html):
        super().__init__()
        self.profiles, self.choices, self.chosen, self.patterns = [], {}, {}, {}
        self.select, self.value = None, None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        match tag:
            case "input" if given.get("name") == "profile":
                self.profiles.append(given["value"])
                if "checked" in given:
                    self.chosen["profile"] = given["value"]
            case "input":
                self.patterns[given["data-name"]] = given.get("pattern")
            case "select":
                self.select = given["name"]
                self.choices[self.select] = []
            case "option":
                self.value = given["value"]
                if "selected" in given:
                    self.chosen[self.select] = self.value

    def handle_data(self, data):
        if self.value is not None:
            self.choices[self.select].append((self.value, data))
            self.value = None


def test_every_slug_is_that_of_kubespawner_or_has_to_be_written():
    """Each character of Unicode, within a word, beside one, and between digits."""
    codes = (*range(1, 0xD800), *range(0xE000, 0x20000))
    names = [f"{code} a{chr(code)}b 1{chr(code)}2 {chr(code)}" for code in codes]
    references = [text for name in lists.REFERENCES for text in (f"&{name};", f"&{name}; 1", f"&{name}")]
    names += [f"{number} a{reference}b" for number, reference in enumerate(references)]
    made = refused = 0
    size = 400
    profiles = [[{"display_name": name} for name in names[at : at + size]] for at in range(0, len(names), size)]
    questions = [{"config": {"profile_list": part}, "user": "ada", "submissions": []} for part in profiles]
    for part, answer in zip(profiles, policy.native(questions), strict=True):
        for problem in answer.get("problems", []):
            at = int(problem.split("/")[2])
            assert "/slug: cannot be made" in problem, problem
            refused += 1
            part[at]["slug"] = f"written-{at}"
    for part, answer in zip(profiles, policy.native(questions), strict=True):
        for profile, (slug, _) in zip(part, answer["fields"][0]["choices"], strict=True):
            if "slug" not in profile:
                made += 1
                assert slug == oracle.slug(profile["display_name"]), profile
    print(f"{made} slugs as KubeSpawner makes them, {refused} to be written")
    assert made > 1500


@pytest.mark.parametrize(
    ("profiles", "problem"),
    [
        ([{"display_name": "A"}, {"display_name": "a"}], "/profile_list/1/slug: there is a `a` before"),
        ([{"display_name": "A", "profile_options": {"o": {}}}], "has nothing to choose from"),
        ([{"slug": "a"}], "/profile_list/0/display_name: is missing"),
    ],
)
def test_ambiguous_lists_are_refused_before_anybody_uses_them(profiles, problem):
    """KubeSpawner takes the first of two, or fails at each start."""
    (answer,) = policy.native([{"config": {"profile_list": profiles}, "user": "ada", "submissions": []}])
    assert any(problem in found for found in answer["problems"]), answer


def test_the_first_of_several_defaults_counts():
    choices = {name: {"kubespawner_override": {"default_url": f"/{name}"}, "default": name != "x"} for name in "xyz"}
    profiles = [
        {"display_name": "A"},
        {"display_name": "B", "default": True, "profile_options": {"o": {"choices": choices}}},
        {"display_name": "C", "default": True},
    ]
    traits = {"profile_list": profiles}
    (answer,) = policy.native([{"config": traits, "user": "ada", "submissions": [{}]}])
    expected = oracle.answer(traits, "ada", {}, form=False)
    assert expected.profile == "b"
    found = lab.of_policy(answer["answers"][0], {})
    assert found["env"] == expected.lab["env"] == {"JUPYTERHUB_DEFAULT_URL": "/y"}


def test_choices_and_options_are_in_the_order_of_their_names():
    """Helm sorts the keys of a profile before KubeSpawner gets them. KubeSpawner itself keeps the order of the file."""

    def choice(url):
        return {"display_name": url, "kubespawner_override": {"default_url": url}}

    options = {"b": {"choices": {"y": choice("/y"), "x": choice("/x")}}, "a": {"choices": {"z": choice("/z")}}}
    profile = {"display_name": "P", "profile_options": options}
    (answer,) = policy.native([{"config": {"profile_list": [profile]}, "user": "ada", "submissions": [{}]}])
    found = lab.of_policy(answer["answers"][0], {})["env"]
    sorted_by_helm = json.loads(json.dumps({"profile_list": [profile]}, sort_keys=True))
    helm = oracle.answer(sorted_by_helm, "ada", {}, form=False)
    file = oracle.answer({"profile_list": [profile]}, "ada", {}, form=False)
    assert found == helm.lab["env"] == {"JUPYTERHUB_DEFAULT_URL": "/x"}
    assert file.lab["env"] == {"JUPYTERHUB_DEFAULT_URL": "/z"}


def test_numbers_in_the_environment_are_texts():
    """KubeSpawner cannot start a lab with them."""
    profile = {"display_name": "P", "kubespawner_override": {"environment": {"A": 1, "B": True, "C": 0.5}}}
    (answer,) = policy.native([{"config": {"profile_list": [profile]}, "user": "ada", "submissions": [{}]}])
    assert lab.of_policy(answer["answers"][0], {})["env"] == {"A": "1", "B": "true", "C": "0.5"}
    assert "TypeError" in oracle.answer({"profile_list": [profile]}, "ada", {}, form=False).refused


def test_names_of_users_are_expanded_as_kubespawner_does(tmp_path):
    """JupyterHub itself expands the settings, with the name and not with its slug."""
    override = {
        "notebook_dir": "/home/{username}",
        "default_url": "/tree/{username}",
        "environment": {"A": "{username}"},
    }
    traits = {"profile_list": [{"display_name": "P", "kubespawner_override": override}]}
    (tmp_path / "config.json").write_text(json.dumps(traits))
    for user in ("ada", "Grace.H@example.org"):
        (tmp_path / "case.json").write_text(json.dumps({"user": {"name": user}}))
        files = ["--config", tmp_path / "config.json", "--input", tmp_path / "case.json"]
        run = policy.component("run", "build-pod.customize", *files, cache=tmp_path)
        assert run.returncode == 0, run.stderr
        found = lab.of_policy({"lab": json.loads(run.stdout), "port": None}, {})
        assert found["env"] == oracle.answer(traits, user, {}, form=False).lab["env"]


def test_the_component_answers_as_the_native_policy_does(sites, tmp_path):
    cases = tmp_path / "cases"
    cases.mkdir()
    for site, answers in sites[:COMPONENTS]:
        for number, (submission, answer) in enumerate(zip(site.submissions, answers["answers"], strict=True)):
            if "lab" not in answer:
                continue
            user = {"name": "ada"}
            asked = {
                "form.parse": (submission.given, answer["options"]),
                "build-pod.customize": (answer["options"], answer["lab"]),
            }
            for hook, (options, expect) in asked.items():
                case = {
                    "hook": hook,
                    "config": site.config,
                    "input": {"user": user, "options": options},
                    "expect": expect,
                }
                (cases / f"{site.number}-{number}-{hook}.json").write_text(json.dumps(case))
    run = policy.component("test", cases, cache=tmp_path)
    print(run.stdout.splitlines()[-1] if run.stdout else run.stderr)
    assert run.returncode == 0, "\n".join(line for line in run.stdout.splitlines() if not line.startswith("ok "))
