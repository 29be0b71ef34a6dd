/// A day of the Gregorian calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    /// Days since 1970-01-01.
    days: i64,
}

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

impl Date {
    /// The day, if it exists in the calendar. Years are 1 to 9999.
    pub(crate) fn from_ymd(year: u32, month: u32, day: u32) -> Option<Self> {
        let exists = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=length(year, month)).contains(&day);
        exists.then(|| Self { days: days(year, month, day) })
    }

    /// The Thursday of a week of ISO 8601, on which weeklies are built. A week belongs to the year in which its
    /// Thursday is, so a year has a week 53 only if there is a 53rd Thursday.
    pub(crate) fn thursday_of_week(year: u32, week: u32) -> Option<Self> {
        if !(1..=9999).contains(&year) || !(1..=53).contains(&week) {
            return None;
        }
        // January 4 is in week 1. 1970-01-01 was a Thursday, and a week begins three days before its Thursday.
        let fourth = days(year, 1, 4);
        let first_thursday = fourth + 3 - (fourth + 3).rem_euclid(7);
        let thursday = first_thursday + 7 * (i64::from(week) - 1);
        (thursday < days(year + 1, 1, 1)).then_some(Self { days: thursday })
    }

    /// Reads `2025-01-31`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-').map(|part| part.parse().ok());
        match (parts.next().flatten(), parts.next().flatten(), parts.next().flatten(), parts.next()) {
            (Some(year), Some(month), Some(day), None) if text.len() == 10 => {
                Self::from_ymd(year, month, day)
            }
            _ => None,
        }
    }

    /// The beginning of the day, in milliseconds since the Unix epoch.
    pub(crate) fn start_millis(self) -> i64 {
        self.days * DAY_MILLIS
    }
}

/// Reads a moment as Nublado does, in milliseconds since the Unix epoch: `2025-01-31`, or with a time, as in
/// `2025-01-31T12:30:00+01:00`. Without an offset it is in UTC.
pub(crate) fn moment(text: &str) -> Result<i64, &'static str> {
    const WRONG: &str = "must be a day or a moment, such as 2025-01-31 or 2025-01-31T12:00:00Z";
    let (day, time) = text.split_at_checked(10).ok_or(WRONG)?;
    let start = Date::parse(day).ok_or(WRONG)?.start_millis();
    if time.is_empty() {
        return Ok(start);
    }
    let time = time.strip_prefix(['T', 't', ' ']).ok_or(WRONG)?;
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (&time[..at], offset_minutes(&time[at..]).ok_or(WRONG)?),
        None => (time, 0),
    };
    // A fraction of a second makes no difference for days.
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':').map(two_digits);
    let seconds = match (parts.next().flatten(), parts.next().flatten(), parts.next(), parts.next()) {
        (Some(hour @ 0..=23), Some(minute @ 0..=59), None, None) => hour * 3600 + minute * 60,
        (Some(hour @ 0..=23), Some(minute @ 0..=59), Some(Some(second @ 0..=59)), None) => {
            hour * 3600 + minute * 60 + second
        }
        _ => return Err(WRONG),
    };
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(WRONG);
    }
    Ok(start + (seconds - offset * 60) * 1000)
}

/// Reads `Z`, `+01:00`, `-0330` or `+01`.
fn offset_minutes(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = text.get(1..)?.replace(':', "");
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { 0 } else { two_digits(minutes)? };
    let hours = two_digits(hours)?;
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
}

fn two_digits(text: &str) -> Option<i64> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// The number of days of a month.
fn length(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Counts the days from 1970-01-01 to a day of the calendar. The year begins in March, so that the leap day is its
/// last.
fn days(year: u32, month: u32, day: u32) -> i64 {
    let (month, day) = (i64::from(month), i64::from(day));
    let year = i64::from(year) - i64::from(month <= 2);
    let months_since_march = (month + 9).rem_euclid(12);
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // March 1 of year 0 is 719468 days before 1970-01-01.
    365 * year + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        for (year, month, day, days) in [
            (1970, 1, 1, 0),
            (1969, 12, 31, -1),
            (2000, 3, 1, 11_017),
            (2024, 2, 29, 19_782),
            (1, 1, 1, -719_162),
        ] {
            assert_eq!(Date::from_ymd(year, month, day).unwrap().days, days, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for (year, month, day) in [
            (2023, 2, 29),
            (2100, 2, 29),
            (2024, 4, 31),
            (2024, 13, 1),
            (2024, 0, 1),
            (2024, 1, 0),
            (0, 1, 1),
            (10_000, 1, 1),
        ] {
            assert_eq!(Date::from_ymd(year, month, day), None, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn a_week_has_the_thursday_of_iso_8601() {
        for (year, week, date) in [
            (2021, 22, "2021-06-03"),
            (2020, 53, "2020-12-31"),
            (2024, 1, "2024-01-04"),
            (2026, 1, "2026-01-01"),
            (2027, 1, "2027-01-07"),
            (2077, 46, "2077-11-18"),
        ] {
            assert_eq!(Date::thursday_of_week(year, week), Date::parse(date), "{year}_{week}");
        }
        for (year, week) in [(2021, 53), (2021, 0), (2021, 54), (0, 1), (10_000, 1)] {
            assert_eq!(Date::thursday_of_week(year, week), None, "{year}_{week}");
        }
    }

    #[test]
    fn a_moment_is_a_day_or_has_a_time() {
        let midnight = Date::from_ymd(2025, 1, 31).unwrap().start_millis();
        for (text, minutes) in [
            ("2025-01-31", 0),
            ("2025-01-31T00:00:00", 0),
            ("2025-01-31T00:00:00Z", 0),
            ("2025-01-31 12:30", 750),
            ("2025-01-31T12:30:00.5Z", 750),
            ("2025-01-31T12:30:00+01:00", 690),
            ("2025-01-31T12:30:00-0130", 840),
            ("2025-01-31T00:00:00+02", -120),
        ] {
            assert_eq!(moment(text), Ok(midnight + minutes * 60_000), "{text}");
        }
        for text in [
            "",
            "2025-1-31",
            "2025-02-30",
            "2025-01-3é",
            "-025-01-31",
            "2025-01-31T",
            "2025-01-31T24:00:00Z",
            "2025-01-31T12",
            "2025-01-31T12:60",
            "2025-01-31T12:00:00:00",
            "2025-01-31T12:00:00+25:00",
            "2025-01-31T12:00:00+é",
            "2025-01-31T12:00:00.Z",
            "2025-01-31X12:00",
        ] {
            assert!(moment(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_next_day_is_one_later(year in 1_u32..9999, month in 1_u32..=12, day in 1_u32..=31) {
            let Some(date) = Date::from_ymd(year, month, day) else { return Ok(()) };
            let next = Date::from_ymd(year, month, day + 1)
                .or_else(|| Date::from_ymd(year, month + 1, 1))
                .or_else(|| Date::from_ymd(year + 1, 1, 1));
            prop_assert_eq!(next.unwrap().days, date.days + 1);
        }

        #[test]
        fn every_week_begins_seven_days_after_the_one_before(year in 1_u32..9999, week in 1_u32..=52) {
            let this = Date::thursday_of_week(year, week).unwrap();
            let next = Date::thursday_of_week(year, week + 1).or_else(|| Date::thursday_of_week(year + 1, 1));
            prop_assert_eq!(next.unwrap().days, this.days + 7);
        }
    }
}
