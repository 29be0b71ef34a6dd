//! Times of the week, for rules that hold at night or at weekends.

use crate::config::Section;

const MINUTE: u64 = 60_000;
const DAY_MINUTES: u32 = 24 * 60;
/// The days in order from the first day of the Unix epoch, which was a Thursday.
const DAYS: [&str; 7] = ["thu", "fri", "sat", "sun", "mon", "tue", "wed"];

/// A period on some days of the week, such as from 22:00 until 06:00 on Fridays and Saturdays. A window whose end is
/// before its beginning ends on the next day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeeklyWindow {
    /// For each day, in the order of [`DAYS`], true if the window begins on it.
    days: [bool; 7],
    from: u32,
    until: u32,
    utc_offset: i64,
}

impl WeeklyWindow {
    /// Reads `{days: [mon, tue], from: "22:00", until: "06:00", utc_offset: "+01:00"}`. Without `days` the window
    /// applies every day, and without `utc_offset` the times are UTC. Summer time is not supported.
    pub fn read(entry: &mut Section<'_>) -> Self {
        let names: Option<Vec<String>> = entry.optional("days");
        if let Some(wrong) = names.iter().flatten().find(|name| !DAYS.contains(&name.as_str())) {
            entry.problem("days", format!("`{wrong}` is no day; write mon, tue, wed, thu, fri, sat or sun"));
        }
        let days = DAYS.map(|day| names.as_ref().is_none_or(|names| names.iter().any(|name| name == day)));
        let utc_offset = entry.parsed("utc_offset", offset).unwrap_or_default();
        let (from, until) = (entry.required_parsed("from", time), entry.required_parsed("until", time));
        Self { days, from, until, utc_offset }
    }

    /// Returns true if this moment, in milliseconds since the Unix epoch ([`crate::host::now_millis`]), is in the
    /// window.
    pub fn contains(&self, now_millis: u64) -> bool {
        let minutes = i64::try_from(now_millis / MINUTE).unwrap_or(i64::MAX).saturating_add(self.utc_offset);
        let day = minutes.div_euclid(DAY_MINUTES.into());
        let time = u32::try_from(minutes.rem_euclid(DAY_MINUTES.into())).unwrap_or_default();
        let begins_on = |day: i64| {
            usize::try_from(day.rem_euclid(7))
                .ok()
                .and_then(|day| self.days.get(day))
                .is_some_and(|begins| *begins)
        };
        if self.from <= self.until {
            return begins_on(day) && (self.from..self.until).contains(&time);
        }
        begins_on(day) && time >= self.from || begins_on(day - 1) && time < self.until
    }
}

/// Parses `HH:MM`, up to `24:00`, into minutes.
fn time(text: &str) -> Result<u32, String> {
    let wrong = || format!("`{text}` is no time of a day; write one such as 22:30");
    let (hours, minutes) = text.split_once(':').ok_or_else(wrong)?;
    let number = |digits: &str| digits.parse::<u32>().ok().filter(|_| digits.len() == 2);
    match (number(hours), number(minutes)) {
        (Some(hours), Some(minutes)) if minutes < 60 && hours * 60 + minutes <= DAY_MINUTES => {
            Ok(hours * 60 + minutes)
        }
        _ => Err(wrong()),
    }
}

/// Parses `+HH:MM` or `-HH:MM` into minutes.
fn offset(text: &str) -> Result<i64, String> {
    let (sign, digits) = match text.split_at_checked(1) {
        Some(("+", digits)) => (1, digits),
        Some(("-", digits)) => (-1, digits),
        _ => return Err(format!("`{text}` is no offset; write one such as +01:00")),
    };
    Ok(sign * i64::from(time(digits)?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn window(value: &Value) -> Result<WeeklyWindow, Vec<String>> {
        let read = |config: &mut Section<'_>| config.section("at", WeeklyWindow::read);
        let config = json!({ "at": value }).to_string();
        let found = crate::config::check(&config, read);
        found.map(|(window, _)| window.unwrap()).map_err(|all| all.into_iter().map(|one| one.field).collect())
    }

    /// Friday, 27 November 2026, 00:00 UTC.
    const FRIDAY: u64 = 1_795_737_600_000;
    const HOUR: u64 = 3_600_000;

    #[test]
    fn a_window_may_end_on_the_next_day() {
        let nights = window(&json!({ "days": ["fri", "sat"], "from": "22:00", "until": "06:00" })).unwrap();
        for (hours, expected) in [
            (0, false),
            (21, false),
            (22, true),
            (24, true),
            (29, true),
            (30, false),
            (46, true),
            (53, true),
            (54, false),
            (70, false),
        ] {
            assert_eq!(nights.contains(FRIDAY + hours * HOUR), expected, "{hours}");
        }
    }

    #[test]
    fn times_may_be_of_another_zone() {
        let day =
            window(&json!({ "days": ["fri"], "from": "00:00", "until": "24:00", "utc_offset": "+02:00" }))
                .unwrap();
        assert!(day.contains(FRIDAY - 2 * HOUR) && !day.contains(FRIDAY - 3 * HOUR));
        assert!(day.contains(FRIDAY + 21 * HOUR) && !day.contains(FRIDAY + 22 * HOUR));
        let every_day = window(&json!({ "from": "08:00", "until": "09:00" })).unwrap();
        assert!((0..7).all(|days| every_day.contains(FRIDAY + (24 * days + 8) * HOUR)));
        assert!(!every_day.contains(0));
    }

    #[test]
    fn what_is_no_time_is_told_with_its_place() {
        for (value, field) in [
            (json!({ "from": "8:00", "until": "09:00" }), "/at/from"),
            (json!({ "from": "08:00", "until": "24:01" }), "/at/until"),
            (json!({ "from": "08:00", "until": "09:00", "days": ["monday"] }), "/at/days"),
            (json!({ "from": "08:00", "until": "09:00", "utc_offset": "1" }), "/at/utc_offset"),
        ] {
            assert_eq!(window(&value).unwrap_err(), [field]);
        }
    }
}
