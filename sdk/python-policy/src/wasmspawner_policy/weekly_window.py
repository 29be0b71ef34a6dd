"""Times of the week, for rules that hold at night or at weekends."""

import re
from dataclasses import dataclass
from typing import Self

from .config import Section

_MINUTE = 60_000
_DAY = 24 * 60
# The first day of the Unix epoch was a Thursday.
_DAYS = ("thu", "fri", "sat", "sun", "mon", "tue", "wed")


@dataclass(frozen=True)
class WeeklyWindow:
    """A time of some days of the week, such as from 22:00 until 06:00 on Fridays. One that ends before it begins ends on
    the next day."""

    days: frozenset[int]
    """The days on which it begins, counted from Thursday."""
    begins: int
    """In minutes since midnight."""
    ends: int
    utc_offset: int
    """In minutes."""

    @classmethod
    def read(cls, entry: Section) -> Self:
        """Reads `{days: [mon, tue], from: "22:00", until: "06:00", utc_offset: "+01:00"}`. Without `days` it is every day,
        and without `utc_offset` the times are UTC. Summer time is not known."""
        names = entry.texts("days") if entry.has("days") else list(_DAYS)
        for name in names:
            if name not in _DAYS:
                entry.problem("days", f"`{name}` is no day; write mon, tue, wed, thu, fri, sat or sun")
        return cls(
            days=frozenset(_DAYS.index(name) for name in names if name in _DAYS),
            begins=entry.required_parsed("from", _time),
            ends=entry.required_parsed("until", _time),
            utc_offset=entry.parsed("utc_offset", _offset, 0),
        )

    def contains(self, now_millis: int) -> bool:
        """Whether this moment, in milliseconds since the Unix epoch (`host.now_millis`), is in it."""
        day, time = divmod(now_millis // _MINUTE + self.utc_offset, _DAY)
        today, yesterday = day % 7 in self.days, (day - 1) % 7 in self.days
        if self.begins <= self.ends:
            return today and self.begins <= time < self.ends
        return (today and time >= self.begins) or (yesterday and time < self.ends)


def _time(text: str) -> int:
    found = re.fullmatch(r"([0-9]{2}):([0-5][0-9])", text)
    minutes = int(found[1]) * 60 + int(found[2]) if found else _DAY + 1
    if minutes > _DAY:
        raise ValueError(f"`{text}` is no time of a day; write one such as 22:30")
    return minutes


def _offset(text: str) -> int:
    if text[:1] not in ("+", "-"):
        raise ValueError(f"`{text}` is no offset; write one such as +01:00")
    return _time(text[1:]) * (-1 if text[0] == "-" else 1)
