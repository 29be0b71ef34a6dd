//! Quantities of resources: `500m`, `1.5Gi`, `2e3`. They are stored as the client wrote them.

/// The decimal suffixes and the powers of ten that they stand for.
const DECIMAL: [(&str, i32); 9] =
    [("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Parses a quantity into thousandths; `None` if the text is not a quantity. Finer parts are rounded up, as in
/// Kubernetes.
pub(crate) fn milli(text: &str) -> Option<i128> {
    let (number, times, over) = split(text)?;
    let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // As in Kubernetes, a suffix without a number is 0.
    let joined = format!("0{whole}{fraction}");
    if text.is_empty() || joined.len() > 26 || !joined.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let divisor = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?.checked_mul(over)?;
    let value = joined.parse::<i128>().ok()?.checked_mul(times)?;
    let rounded_up = value / divisor + (value % divisor).signum();
    Some(if number.starts_with('-') { -rounded_up } else { rounded_up })
}

/// Formats thousandths as a quantity.
pub(crate) fn from_milli(milli: i128) -> String {
    if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") }
}

/// Returns the number in a quantity, with the multiplier and the divisor that convert it to thousandths.
fn split(text: &str) -> Option<(&str, i128, i128)> {
    for (power, suffix) in (1..).zip(BINARY) {
        if let Some(number) = text.strip_suffix(suffix) {
            return Some((number, 1024_i128.pow(power) * 1000, 1));
        }
    }
    let (number, power) = if let Some(found) =
        DECIMAL.iter().find_map(|(suffix, power)| Some((text.strip_suffix(suffix)?, *power)))
    {
        found
    } else if let Some((number, power)) = text.split_once(['e', 'E']) {
        (number, power.parse().ok().filter(|power: &i32| power.abs() <= 30)?)
    } else {
        (text, 0)
    };
    let times = 10_i128.checked_pow((power + 3).max(0).unsigned_abs())?;
    Some((number, times, 10_i128.checked_pow((-power - 3).max(0).unsigned_abs())?))
}

#[cfg(test)]
mod tests {
    use super::{from_milli, milli};
    use serde_json::Value;

    /// All packages with quantities are tested with this table.
    #[test]
    fn amounts_are_those_of_kubernetes() {
        let table = include_str!("../../../tests/tables/quantities.json");
        for row in serde_json::from_str::<Vec<Value>>(table).unwrap() {
            let text = row["text"].as_str().unwrap();
            let expected = match &row["millis"] {
                Value::Null if row["stored"] == "0" => Some(0),
                millis => millis.to_string().trim_matches('"').parse().ok(),
            };
            assert_eq!(milli(text), expected, "{text}");
        }
        assert_eq!((from_milli(1500), from_milli(2000)), ("1500m".to_owned(), "2".to_owned()));
        assert_eq!((milli("1e99"), milli("1e-99"), milli("1e2147483647")), (None, None, None));
    }
}
