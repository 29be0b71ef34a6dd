"""The test kit, with a policy that has every hook."""

import pytest
from wasmspawner_policy import (
    Action,
    Allow,
    AuthorizeRequest,
    Deny,
    Options,
    Policy,
    Quota,
    Section,
    Usage,
    User,
    Verdict,
    host,
)
from wasmspawner_policy.event import Event, Happening
from wasmspawner_policy.images import Entry, ImageMenu
from wasmspawner_policy.inject import Access, Workload, WorkloadKind
from wasmspawner_policy.lab_server import Settings
from wasmspawner_policy.pod import Customization, Image
from wasmspawner_policy.testing import ConfigErrors, TestKit, given
from wasmspawner_policy.volume import Claim, Volume


class Everything(Policy):
    """Decides everything."""

    def __init__(self, config: Section) -> None:
        self.labs = config.optional("labs", int, 2)

    def quota(self, user: User, usage: Usage) -> Quota:
        return Quota(labs=self.labs, pods=host.present_use().labs)

    def authorize(self, request: AuthorizeRequest) -> Verdict:
        teams = host.data("teams")
        if teams is None or request.user.name not in teams.value():
            host.info(f"{request.user.name} is in no team")
            return Deny("Ask for a team.")
        return Allow()

    def on_event(self, event: Event) -> None:
        host.info(f"{event.what.name} {event.username}")

    def inject(self, user: User, server: str, options: Options, workload: Workload) -> Access | Deny:
        return Access() if workload.kind is WorkloadKind.DEPLOYMENT else Deny("No.")

    def build_pod(self, user: User, server: str, options: Options) -> Customization:
        home = Volume("home", Claim(host.expand("home-{username}")))
        return Customization(env={"NOW": str(host.now_millis()), "R": host.random(2).hex()}, volumes=[home])

    def lab_server(self, user: User, server: str, options: Options) -> Settings:
        return Settings(port=8000)

    def lab_files(self, user: User, server: str, options: Options) -> dict[str, str]:
        return {"/etc/site/home": host.expand("home-{username}")}

    def images(self, user: User, server: str) -> ImageMenu | None:
        known = host.images("example.org/lab")
        return ImageMenu([Entry(one.tag, f"example.org/lab:{one.tag}", one.tag) for one in known]) if known else None


ADA = User("ada")


def test_the_host_answers_what_is_given() -> None:
    policy = TestKit(Everything)
    assert policy.may(Action.SPAWN, ADA) == Deny("Ask for a team.")
    with given(data={"teams": {"ada": "core"}}):
        assert policy.may(Action.SPAWN, ADA) == Allow()
    with given(now_millis=5, random=b"\1"):
        assert policy.build_pod(ADA).env == {"NOW": "5", "R": "0100"}
    with given(past_use={0: host.UseOfDays(60), 6: host.UseOfDays(30), 7: host.UseOfDays(900)}):
        assert [host.past_use(days).lab_seconds for days in (0, 1, 7, 30)] == [60, 60, 90, 990]
    with given(present_use=host.UseOfUser(labs=3)):
        assert policy.quota(ADA).pods == 3
    with given(last_options={"size": "large", "debug": True}):
        assert host.last_options() == {"size": "large", "debug": True}
    assert host.last_options() == {}
    with given(images={"example.org/lab": [host.KnownImage("v1")]}):
        menu = policy.images(ADA)
        assert menu is not None
        assert menu.entries[0].reference == "example.org/lab:v1"
    assert policy.images(ADA) is None
    assert policy.prepull() == []


def test_what_the_policy_logs_can_be_read() -> None:
    with given(log=[]) as situation:
        TestKit(Everything).may(Action.SPAWN, ADA)
    assert situation.log == [("info", "ada is in no team")]


def test_templates_are_filled_in_for_a_lab_only() -> None:
    volume = TestKit(Everything).build_pod(ADA).volumes[0]
    assert volume == Volume("home", Claim("home-ada"))
    assert host.expand("{{a}} {username}") == "{{a}} {username}"
    for wrong in ("{usrname}", "{", "}", "{userid}", "{username!r}"):
        with pytest.raises(ValueError):
            host.expand(wrong)
    with given(lab_of=User("ada", uid=1000, gid=100).in_group("staff", 5)):
        assert host.expand("{{{uid}:{gid}}} {supplemental_gids} {home}") == "{1000:100} 5 /home/ada"


def test_events_are_heard() -> None:
    with given(log=[]) as situation:
        TestKit(Everything).on_event(Event(Happening.READY, 0, "ada"))
    assert situation.log == [("info", "READY ada")]


def test_workloads_and_servers() -> None:
    policy = TestKit(Everything)
    assert policy.inject(ADA, Workload(WorkloadKind.DEPLOYMENT, "shop", "web")) == Access()
    assert policy.inject(ADA, Workload(WorkloadKind.DAEMON_SET, "shop", "web")) == Deny("No.")
    assert policy.lab_server(ADA).port == 8000
    assert policy.lab_files(ADA) == {"/etc/site/home": "home-ada"}


def test_a_wrong_configuration_is_refused() -> None:
    with pytest.raises(ConfigErrors, match="/labs: must be a whole number, not a string"):
        TestKit(Everything, {"labs": "two"})


def test_an_answer_of_another_type_is_no_answer() -> None:
    class Forgetful(Policy):
        def authorize(self, request: AuthorizeRequest) -> Verdict:
            return None  # type: ignore[return-value]

        def build_pod(self, user: User, server: str, options: Options) -> Customization:
            return Image("lab")  # type: ignore[return-value]

    with pytest.raises(TypeError, match="authorize returned None; return Allow or Deny"):
        TestKit(Forgetful).may(Action.SPAWN, ADA)
    with pytest.raises(TypeError, match="return Customization"):
        TestKit(Forgetful).build_pod(ADA)
