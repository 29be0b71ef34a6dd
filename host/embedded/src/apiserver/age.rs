//! How long ago something was, as kubectl writes it.

use jiff::Timestamp;

/// `5s`, `3m20s`, `7h`, `12d`, `2y10d`: coarser as it grows, as kubectl writes it.
pub(super) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(since.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |major: i64, major_unit: &str, minor: i64, minor_unit: &str| match minor {
        0 => format!("{major}{major_unit}"),
        _ => format!("{major}{major_unit}{minor}{minor_unit}"),
    };
    match (minutes, hours, days) {
        _ if seconds < 120 => format!("{seconds}s"),
        (..10, _, _) => two(minutes, "m", seconds % 60, "s"),
        (..180, _, _) => format!("{minutes}m"),
        (_, ..8, _) => two(hours, "h", minutes % 60, "m"),
        (_, ..48, _) => format!("{hours}h"),
        (_, ..192, _) => two(days, "d", hours % 24, "h"),
        (_, _, ..730) => format!("{days}d"),
        _ => two(days / 365, "y", days % 365, "d"),
    }
}

#[cfg(test)]
mod tests {
    use super::age;
    use jiff::Timestamp;

    #[test]
    fn ages_get_coarser() {
        let now = Timestamp::from_second(2_000_000_000).unwrap();
        for (seconds, expected) in [
            (-5, "0s"),
            (119, "119s"),
            (200, "3m20s"),
            (601, "10m"),
            (3 * 3600 + 125, "3h2m"),
            (9 * 3600 + 60, "9h"),
            (3 * 86_400 + 7200, "3d2h"),
            (12 * 86_400, "12d"),
            (800 * 86_400, "2y70d"),
        ] {
            let since = Timestamp::from_second(now.as_second() - seconds).unwrap();
            assert_eq!(age(since, now), expected, "{seconds}");
        }
    }
}
