import pytest

from wasmspawner import retries
from wasmspawner.errors import Unreachable
from wasmspawner.retries import Retries


@pytest.fixture
def pauses(monkeypatch):
    """The seconds of each pause, without waiting."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(retries.asyncio, "sleep", sleep)
    return slept


async def test_pauses_grow_to_a_limit_and_are_spread(pauses):
    attempts = Retries(first=1, longest=4)
    for _ in range(40):
        await attempts.pause(Unreachable("away"))
    assert all(0.5 * most <= pause <= most for pause, most in zip(pauses, [1, 2] + [4] * 38, strict=True))
    assert len(set(pauses)) > 30


async def test_the_pause_that_the_service_asks_for_is_made(pauses):
    await Retries(15).pause(Unreachable("starting", retry_after=7))
    assert pauses == [7]


async def test_a_pause_longer_than_our_patience_is_none(pauses):
    with pytest.raises(Unreachable):
        await Retries(15).pause(Unreachable("starting", retry_after=3600))
    assert pauses == []


async def test_an_expired_timer_alone_is_no_reason_to_give_up(pauses):
    attempts = Retries(0)
    await attempts.pause(Unreachable("away"))
    await attempts.pause(Unreachable("away"))
    with pytest.raises(Unreachable):
        await attempts.pause(Unreachable("away"))


async def test_without_a_limit_it_goes_on(pauses):
    attempts = Retries()
    for _ in range(1000):
        await attempts.pause(Unreachable("away", retry_after=60))
    assert len(pauses) == 1000
