//! Quantities of resources: `500m`, `1.5Gi`, `2e3`.

/// The decimal suffixes and the powers of ten that they stand for.
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const NANO: i128 = 1_000_000_000;

/// How the client wrote a quantity, and how Kubernetes writes it back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

/// A quantity in thousandths; `None` when the text is not a quantity. Finer parts are rounded up, as Kubernetes does.
pub(crate) fn milli(text: &str) -> Option<i128> {
    read(text).map(|(nanos, _)| away_from_zero(nanos, NANO / 1000))
}

/// Thousandths as a quantity.
pub(crate) fn from_milli(milli: i128) -> String {
    if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") }
}

/// The same quantity as Kubernetes writes it: no fraction, the largest suffix of its form. `None` for what cannot be
/// read.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (nanos, form) = read(text)?;
    let whole = nanos / NANO;
    if form == Form::Binary && nanos % NANO == 0 && whole.abs() >= 1024 {
        let (mut number, mut suffix) = (whole, "");
        for larger in BINARY.iter().take_while(|_| whole != 0) {
            if number % 1024 != 0 {
                break;
            }
            (number, suffix) = (number / 1024, larger);
        }
        return Some(format!("{number}{suffix}"));
    }
    let (mut number, mut at) = (nanos, 0);
    while number != 0 && number % 1000 == 0 && at + 1 < DECIMAL.len() {
        (number, at) = (number / 1000, at + 1);
    }
    Some(match DECIMAL[at] {
        _ if number == 0 => "0".to_owned(),
        (_, power) if form == Form::Exponent && power != 0 => format!("{number}e{power}"),
        (suffix, _) => format!("{number}{suffix}"),
    })
}

/// The canonical form of an amount of a resource, which Kubernetes rounds up to thousandths.
pub(crate) fn stored(text: &str) -> Option<String> {
    let (nanos, _) = read(text)?;
    if nanos % (NANO / 1000) == 0 { canonical(text) } else { canonical(&from_milli(milli(text)?)) }
}

/// A quantity in billionths, which is the finest part that Kubernetes keeps.
fn read(text: &str) -> Option<(i128, Form)> {
    let (number, times, over, form) = split(text)?;
    let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // As in Kubernetes, a suffix without a number is 0.
    let joined = format!("0{whole}{fraction}");
    if text.is_empty() || joined.len() > 26 || !joined.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let value = joined.parse::<i128>().ok()?.checked_mul(times)?;
    let nanos = away_from_zero(value, over.checked_mul(scale)?);
    Some((if number.starts_with('-') { -nanos } else { nanos }, form))
}

/// The number in a quantity, and by what to multiply and to divide it to get billionths.
fn split(text: &str) -> Option<(&str, i128, i128, Form)> {
    for (power, suffix) in (1..).zip(BINARY) {
        if let Some(number) = text.strip_suffix(suffix) {
            return Some((number, 1024_i128.pow(power) * NANO, 1, Form::Binary));
        }
    }
    let decimal = |number, power: i32, form| {
        let over = 10_i128.checked_pow((-power - 9).max(0).unsigned_abs())?;
        Some((number, 10_i128.checked_pow((power + 9).max(0).unsigned_abs())?, over, form))
    };
    for (suffix, power) in DECIMAL.iter().filter(|(suffix, _)| !suffix.is_empty()) {
        if let Some(number) = text.strip_suffix(suffix) {
            return decimal(number, *power, Form::Decimal);
        }
    }
    match text.split_once(['e', 'E']) {
        Some((number, power)) => {
            decimal(number, power.parse().ok().filter(|power: &i32| power.abs() <= 30)?, Form::Exponent)
        }
        None => decimal(text, 0, Form::Decimal),
    }
}

fn away_from_zero(value: i128, divisor: i128) -> i128 {
    value / divisor + (value % divisor).signum()
}

#[cfg(test)]
mod tests {
    use super::{canonical, from_milli, milli};
    use serde_json::Value;

    /// The table that all packages with quantities are tested with.
    #[test]
    fn amounts_are_those_of_kubernetes() {
        let table = include_str!("../../../tests/tables/quantities.json");
        for row in serde_json::from_str::<Vec<Value>>(table).unwrap() {
            let text = row["text"].as_str().unwrap();
            if row["millis"].is_null() && row["stored"] == "0" {
                assert_eq!(milli(text), Some(0), "{text}");
                continue;
            }
            assert_eq!(milli(text), row["millis"].to_string().trim_matches('"').parse().ok(), "{text}");
            assert_eq!(canonical(text).as_deref(), row["canonical"].as_str(), "{text}");
        }
        assert_eq!((from_milli(1500), from_milli(2000)), ("1500m".to_owned(), "2".to_owned()));
        assert_eq!((milli("1e99"), milli("1e-99"), milli("1e2147483647")), (None, None, None));
    }
}
