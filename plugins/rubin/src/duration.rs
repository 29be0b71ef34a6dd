/// Reads a duration in seconds, as Nublado does: `600`, `10m`, `1h30m`, `2 weeks 3 days`.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a duration such as 600, 10m, 1h30m or 2 weeks");
    let (mut rest, mut total) = match text.parse::<u64>() {
        Ok(seconds) => ("", seconds),
        Err(_) => (text.trim(), 0),
    };
    while !rest.is_empty() {
        let number = rest.find(|char: char| !char.is_ascii_digit()).ok_or_else(wrong)?;
        let (amount, after) = rest.split_at(number);
        let after = after.trim_start();
        let end = after.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let amount: u64 = amount.parse().map_err(|_| wrong())?;
        let part = amount.checked_mul(unit_seconds(unit).ok_or_else(wrong)?);
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = after.trim_start();
    }
    // Milliseconds of the duration must fit as well.
    if total > 0 && total < u64::MAX / 1000 { Ok(total) } else { Err(wrong()) }
}

fn unit_seconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "w" | "week" | "weeks" => 7 * 24 * 3600,
        "d" | "day" | "days" => 24 * 3600,
        "h" | "hr" | "hour" | "hours" => 3600,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_nublado() {
        for (text, expected) in [
            ("600", 600),
            ("10m", 600),
            ("1h30m", 5400),
            ("1 hour 30 minutes", 5400),
            ("2 weeks", 1_209_600),
            ("1w2d3h4m5s", 788_645),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "",
            " ",
            "m",
            "10x",
            "10m5",
            "-1",
            "1.5h",
            "99999999999999999999s",
            "9999999999999999w",
            "18446744073709551615",
            "0",
            "ten m",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
