import json

import pytest
from wasmspawner_policy import WeeklyWindow
from wasmspawner_policy.config import ConfigErrors, read

FRIDAY = 1_795_737_600_000
"""Friday, 27 November 2026, 00:00 UTC."""
HOUR = 3_600_000


def window(**entry: object) -> WeeklyWindow:
    return read(json.dumps(entry), WeeklyWindow.read)[0]


def test_a_window_may_end_on_the_next_day() -> None:
    nights = window(days=["fri", "sat"], **{"from": "22:00", "until": "06:00"})
    inside = [hours for hours in range(72) if nights.contains(FRIDAY + hours * HOUR)]
    assert inside == [*range(22, 30), *range(46, 54)]


def test_times_may_be_of_another_zone() -> None:
    day = window(days=["fri"], utc_offset="+02:00", **{"from": "00:00", "until": "24:00"})
    assert [hours for hours in range(-12, 48) if day.contains(FRIDAY + hours * HOUR)] == list(range(-2, 22))
    every_day = window(**{"from": "08:00", "until": "09:00"})
    assert all(every_day.contains(FRIDAY + (24 * day + 8) * HOUR) for day in range(7))


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"from": "8:00", "until": "09:00"}, "/from"),
        ({"from": "08:00", "until": "24:01"}, "/until"),
        ({"from": "08:00", "until": "09:00", "days": ["monday"]}, "/days"),
        ({"from": "08:00", "until": "09:00", "utc_offset": "1"}, "/utc_offset"),
        ({"until": "09:00"}, "/from"),
    ],
)
def test_what_is_no_time_is_told_with_its_place(entry: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigErrors) as raised:
        window(**entry)
    assert [error.field for error in raised.value.errors] == [field]
