"""What counts as the same output, and what does not."""

import os

import pytest
from console import Session


def follow(folder, *steps):
    return Session(folder, dict(os.environ)).follow("```console\n" + "".join(steps) + "```\n")


def test_ages_spaces_and_made_up_names_may_differ_and_a_name_keeps_its_meaning(tmp_path):
    steps = (
        "$ printf 'NAME  AGE\\nlab-12ab34cd     1m2s\\n'\nNAME           AGE\nlab-99999999   5s\n",
        "$ echo the Secret lab-99999999-credentials\nthe Secret lab-12ab34cd-credentials\n",
        '$ echo \'pod "a" deleted from here namespace\'\npod "a" deleted\n',
    )
    assert follow(tmp_path, *steps[:1]) == 1
    assert follow(tmp_path, *steps[:1], steps[1].replace("lab-12ab34cd-", "lab-99999999-"), steps[2]) == 3
    with pytest.raises(AssertionError, match="the Secret"):
        follow(tmp_path, *steps)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo Bound", "Pending"),
        ("echo a b", "a"),
        ("echo", "something"),
        ("echo something", ""),
        ("printf 'a\\nb'", "a b"),
        ("echo other-12ab34cd", "lab-12ab34ce"),
        ("echo lab-12ab34cd lab-00000000", "lab-99999999 lab-99999999"),
        ("echo refused >&2", "allowed"),
    ],
)
def test_other_differences_are_noticed(tmp_path, command, said):
    with pytest.raises(AssertionError, match="The page says"):
        follow(tmp_path, f"$ {command}\n{said}\n")


def test_files_of_the_page_are_saved_as_they_are_meant_in_this_run(tmp_path):
    session = Session(tmp_path, dict(os.environ), {"https://example.org": "https://here"})
    page = "```yaml\n# a.yaml\nurl: https://example.org\n```\n\n```yaml\nb: 1\n```\n\n"
    assert session.follow(page + "```console\n$ tail -n 1 a.yaml; ls\nurl: https://example.org\na.yaml\n```\n") == 1
