/// Reads a duration as Nublado does, in seconds: a number, or `10m`, `1h30m`, `2 weeks 3 days`.
pub(super) fn seconds(value: &serde_json::Value) -> Option<u64> {
    let text = match value {
        serde_json::Value::Number(number) => return number.as_u64().filter(|seconds| *seconds > 0),
        serde_json::Value::String(text) => text.trim(),
        _ => return None,
    };
    if let Ok(seconds) = text.parse::<u64>() {
        return (seconds > 0).then_some(seconds);
    }
    let (mut rest, mut total) = (text, 0_u64);
    while !rest.is_empty() {
        let (amount, after) = rest.split_at(rest.find(|char: char| !char.is_ascii_digit())?);
        let after = after.trim_start();
        let (unit, after) =
            after.split_at(after.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(after.len()));
        let unit = match unit {
            "w" | "week" | "weeks" => 7 * 24 * 3600,
            "d" | "day" | "days" => 24 * 3600,
            "h" | "hr" | "hour" | "hours" => 3600,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            _ => return None,
        };
        total = total.checked_add(amount.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = after.trim_start();
    }
    (total > 0).then_some(total)
}

/// A span of time as the service's configuration has it.
pub(super) fn span(seconds: u64) -> String {
    match (seconds % 3600, seconds % 60) {
        (0, _) => format!("{}h", seconds / 3600),
        (_, 0) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn durations_are_those_of_nublado() {
        for (value, expected) in [
            (json!(600), Some(600)),
            (json!("600"), Some(600)),
            (json!("1h30m"), Some(5400)),
            (json!("2 weeks 1 day"), Some(1_296_000)),
            (json!(0), None),
            (json!(""), None),
            (json!("10x"), None),
            (json!("m"), None),
            (json!("5"), Some(5)),
            (json!("99999999999999999999s"), None),
            (json!(["5m"]), None),
            (Value::Null, None),
        ] {
            assert_eq!(seconds(&value), expected, "{value}");
        }
    }

    #[test]
    fn spans_have_the_largest_whole_unit() {
        assert_eq!([3600, 5400, 90].map(span), ["1h", "90m", "90s"]);
    }
}
