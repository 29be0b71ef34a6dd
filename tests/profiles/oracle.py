"""What KubeSpawner itself makes of a profile list and of what a user submits."""

from __future__ import annotations

import asyncio
import copy
import logging
from dataclasses import dataclass, field
from typing import Any

import kubespawner.spawner as module
import lab
from kubernetes_asyncio.client import ApiClient
from traitlets.config import Config

# No API server is needed for the manifest of a pod.
module.load_config = lambda **_: None
module.shared_client = lambda *_, **__: None


@dataclass
class User:
    """As much of JupyterHub's user as a manifest needs."""

    name: str
    id: int = 1
    groups: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"/user/{self.name}/"

    @property
    def escaped_name(self) -> str:
        return self.name


class Hub:
    """As much of JupyterHub as a manifest needs."""

    public_host = ""
    api_url = "/hub/api"
    base_url = "/hub/"


@dataclass
class Answer:
    """A lab in the form of `lab.py`, or the reason why there is none."""

    lab: dict[str, Any] | None = None
    profile: str | None = None
    # KubeSpawner leaves out arguments where no `cmd` is set.
    left_out: list[str] = field(default_factory=list)
    refused: str | None = None


def spawner(traits: dict[str, Any], user: str) -> module.KubeSpawner:
    """A spawner with these settings. It changes their dictionaries, so it gets copies."""
    config = Config({"KubeSpawner": copy.deepcopy(traits)})
    made = module.KubeSpawner(config=config, user=User(user), hub=Hub(), _mock=True)
    made.log = logging.getLogger("kubespawner")
    made.log.setLevel(logging.CRITICAL)
    made.api_token = made.oauth_client_id = "x"
    return made


async def _manifest(of: module.KubeSpawner) -> dict[str, Any]:
    return ApiClient.sanitize_for_serialization(_Serializer(), await of.get_pod_manifest())


class _Serializer(ApiClient):
    """Without the connection that the real client opens."""

    def __init__(self) -> None:
        pass

    def __del__(self) -> None:
        pass


def answer(traits: dict[str, Any], user: str, submission: dict[str, Any], *, form: bool) -> Answer:
    """What a lab gets that is started with a form, or by a program with `user_options`."""
    return asyncio.run(_answer(traits, user, submission, form=form))


async def _answer(traits: dict[str, Any], user: str, submission: dict[str, Any], *, form: bool) -> Answer:
    with_profiles, without = spawner(traits, user), spawner(traits, user)
    options = (
        with_profiles.options_from_form({name: [value] for name, value in submission.items()}) if form else submission
    )
    with_profiles.user_options = options
    profiles = with_profiles._get_initialized_profile_list(with_profiles.profile_list)
    try:
        profile = with_profiles._get_profile(options.get("profile"), profiles)["slug"]
        await with_profiles.load_user_options()
        manifest = await _manifest(with_profiles)
    # It raises whatever comes: ValueError, KeyError, TraitError, TypeError. None of them starts a lab.
    except Exception as error:
        return Answer(refused=f"{type(error).__name__}: {error}")
    found = lab.of_manifest(manifest, await _manifest(without), with_profiles, without)
    left_out = [] if with_profiles.cmd or without.cmd else list(with_profiles.args)
    return Answer(found, profile, left_out)


def initialized(traits: dict[str, Any]) -> list[dict[str, Any]]:
    """The list with its slugs and defaults."""
    return spawner(traits, "ada")._get_initialized_profile_list(copy.deepcopy(traits["profile_list"]))


def slug(display_name: str) -> str:
    """The slug of a profile without one."""
    return module.slugify(display_name)


def form(traits: dict[str, Any]) -> str:
    """The HTML of the form."""
    return spawner(traits, "ada")._render_options_form(copy.deepcopy(traits["profile_list"]))
