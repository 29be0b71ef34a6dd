use std::fmt;
use std::str::FromStr;

use jiff::civil::Time;
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hours of each day in UTC, such as `03:00-05:30`. With `22:00-04:00`, they pass midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct DailyHours {
    from: Time,
    until: Time,
}

/// Text that is not a span of hours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a span of hours in UTC such as `03:00-05:30`")]
pub struct InvalidHours(String);

impl DailyHours {
    /// Returns true if these hours include the time; their end is not included.
    pub fn include(self, now: Timestamp) -> bool {
        let time = now.to_zoned(TimeZone::UTC).time();
        if self.from < self.until {
            self.from <= time && time < self.until
        } else {
            self.from <= time || time < self.until
        }
    }
}

impl FromStr for DailyHours {
    type Err = InvalidHours;

    fn from_str(text: &str) -> Result<Self, InvalidHours> {
        let time = |text: &str| Time::strptime("%H:%M", text.trim()).ok();
        let read = || {
            let (from, until) = text.split_once('-')?;
            let (from, until) = (time(from)?, time(until)?);
            (from != until).then_some(Self { from, until })
        };
        read().ok_or_else(|| InvalidHours(text.to_owned()))
    }
}

impl TryFrom<String> for DailyHours {
    type Error = InvalidHours;

    fn try_from(text: String) -> Result<Self, InvalidHours> {
        text.parse()
    }
}

impl From<DailyHours> for String {
    fn from(hours: DailyHours) -> Self {
        hours.to_string()
    }
}

impl fmt::Display for DailyHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, until } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from.hour(), from.minute(), until.hour(), until.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_may_pass_midnight() {
        for (hours, time, expected) in [
            ("03:00-05:30", "03:00", true),
            ("03:00-05:30", "05:29", true),
            ("03:00-05:30", "05:30", false),
            ("03:00-05:30", "02:59", false),
            ("22:00-04:00", "23:59", true),
            ("22:00-04:00", "00:00", true),
            ("22:00-04:00", "04:00", false),
            ("22:00-00:00", "00:00", false),
            ("00:00-12:00", "00:00", true),
        ] {
            let parsed: DailyHours = hours.parse().unwrap();
            assert_eq!(parsed.to_string(), hours);
            let now: Timestamp = format!("2026-11-23T{time}:00Z").parse().unwrap();
            assert_eq!(parsed.include(now), expected, "{hours} {time}");
        }
        for text in
            ["", "3", "03:00", "03:00-03:00", "03:00-24:00", "03:61-04:00", "a-b", "03:00-04:00-05:00"]
        {
            let error = text.parse::<DailyHours>().unwrap_err().to_string();
            assert!(error.contains("is not a span of hours in UTC such as"), "{text}: {error}");
        }
    }
}
