from datetime import UTC, datetime

import pytest

from wasmspawner.lab_state import LabState
from wasmspawner.request import http_date


@pytest.mark.parametrize(
    ("entry", "alive", "stopped"),
    [
        ({"status": "starting", "pod": "missing"}, True, False),
        ({"status": "running", "pod": "present"}, True, False),
        ({"status": "terminating", "pod": "present"}, True, False),
        ({"status": "terminating"}, True, False),
        ({"status": "terminating", "pod": "missing"}, False, True),
        ({"status": "failed", "pod": "missing"}, False, True),
        ({"status": "failed", "pod": "present"}, False, False),
        ({"status": "hibernating", "pod": "missing"}, None, False),
    ],
)
def test_each_status_is_alive_or_stopped(entry, alive, stopped):
    state = LabState.of(entry)
    assert (state.alive, state.stopped) == (alive, stopped)


def test_the_age_is_by_the_clock_of_the_service():
    entry = {"status": "starting", "started_at": "2026-11-21T10:20:09.804881171Z"}
    assert LabState.of(entry, http_date("Sat, 21 Nov 2026 10:20:12 GMT")).age == pytest.approx(2.195119)


@pytest.mark.parametrize("started_at", [None, "", "yesterday", "2026-11-21T10:20:09", 7])
def test_no_age_without_a_date(started_at):
    assert LabState.of({"status": "starting", "started_at": started_at}, datetime.now(UTC)).age is None


@pytest.mark.parametrize(
    "date", ["", "nonsense", "Sat, 21 Nov 2026 10:20:12 -0000", "Sat, 21 Nov 99999999999 10:20:12 GMT"]
)
def test_an_answer_without_a_usable_date_is_taken_as_of_now(date):
    entry = {"status": "starting", "started_at": datetime.now(UTC).isoformat()}
    assert abs(LabState.of(entry, http_date(date)).age) < 60
