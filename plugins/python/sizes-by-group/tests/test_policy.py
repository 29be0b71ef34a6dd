import pytest
from policy import SizesByGroup
from wasmspawner_policy import Denied, Invalid, Options, User
from wasmspawner_policy.testing import ConfigErrors, TestKit

SIZES = [
    {"name": "small", "cpu": 1, "memory": "2Gi"},
    {"name": "large", "cpu": 8, "memory": "32Gi", "groups": ["staff"]},
]
EVE, ADA = User("eve"), User("ada").in_group("staff")


@pytest.fixture
def policy() -> TestKit[SizesByGroup]:
    return TestKit(SizesByGroup, {"sizes": SIZES})


def test_members_of_a_group_see_its_sizes(policy: TestKit[SizesByGroup]) -> None:
    assert policy.parse(EVE, {"size": "small"}) == {"size": "small"}
    assert policy.parse(ADA, {"size": "large"}) == {"size": "large"}
    with pytest.raises(Invalid, match='size: Size cannot be "large": choose one of small'):
        policy.parse(EVE, {"size": "large"})


def test_a_lab_has_its_size_and_nobody_gets_another_by_asking_for_it(policy: TestKit[SizesByGroup]) -> None:
    def memory(user: User, options: Options) -> int | None:
        resources = policy.build_pod(user, options).resources
        return resources and resources.memory_limit_bytes

    assert memory(ADA, {"size": "large"}) == 32 << 30
    assert memory(ADA, {}) == 2 << 30
    with pytest.raises(Denied, match=r"This size is not for you\."):
        memory(EVE, {"size": "large"})


def test_what_is_wrong_in_the_configuration_is_told_with_its_place() -> None:
    with pytest.raises(ConfigErrors) as raised:
        TestKit(SizesByGroup, {"sizes": [{"name": "small", "cpu": "1x", "groups": ["staff"]}]})
    assert [error.field for error in raised.value.errors] == ["/sizes/0/cpu", "/sizes/0/memory", "/sizes"]
