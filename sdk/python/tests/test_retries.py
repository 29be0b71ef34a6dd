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


async def test_pauses_grow_to_a_limit_and_are_random(pauses):
    attempts = Retries(first=1, longest=4)
    for _ in range(40):
        await attempts.pause(Unreachable("away"))
    assert all(0.5 * most <= pause <= most for pause, most in zip(pauses, [1, 2] + [4] * 38, strict=True))
    assert len(set(pauses)) > 30


async def test_the_pause_is_that_of_retry_after(pauses):
    await Retries(15).pause(Unreachable("starting", retry_after=7))
    assert pauses == [7]


async def test_a_retry_after_beyond_the_time_limit_gives_up_at_once(pauses):
    with pytest.raises(Unreachable):
        await Retries(15).pause(Unreachable("starting", retry_after=3600))
    assert pauses == []


async def test_after_the_time_limit_there_is_one_more_attempt(pauses):
    attempts = Retries(0)
    await attempts.pause(Unreachable("away"))
    await attempts.pause(Unreachable("away"))
    with pytest.raises(Unreachable):
        await attempts.pause(Unreachable("away"))


async def test_without_a_time_limit_retries_do_not_end(pauses):
    attempts = Retries()
    for _ in range(1000):
        await attempts.pause(Unreachable("away", retry_after=60))
    assert len(pauses) == 1000
