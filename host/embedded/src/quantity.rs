//! Quantities of resources: `500m`, `1.5Gi`, `2e3`.

/// A quantity in thousandths; `None` when the text is not a quantity. Finer parts are rounded up, as Kubernetes does.
pub(crate) fn milli(text: &str) -> Option<i128> {
    let (number, factor) = split(text)?;
    let (negative, digits) = match number.as_bytes().first()? {
        b'-' => (true, &number[1..]),
        b'+' => (false, &number[1..]),
        _ => (false, number),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // One text of digits, `scale` of them behind the point.
    let scale = u32::try_from(fraction.len()).ok()?;
    let joined = format!("{whole}{fraction}");
    if joined.len() > 25 || !joined.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value: i128 = joined.parse().ok()?;
    let (times, over) = match factor {
        Factor::Binary(power) => (1024_i128.checked_pow(power)?.checked_mul(1000)?, 1),
        Factor::Decimal(power @ 0..) => (10_i128.checked_pow(u32::try_from(power).ok()? + 3)?, 1),
        Factor::Decimal(power) => (1000, 10_i128.checked_pow(power.unsigned_abs())?),
    };
    let value = value.checked_mul(times)?;
    let over = over.checked_mul(10_i128.checked_pow(scale)?)?;
    let rounded = value / over + i128::from(value % over != 0);
    Some(if negative { -rounded } else { rounded })
}

enum Factor {
    Binary(u32),
    Decimal(i32),
}

fn split(text: &str) -> Option<(&str, Factor)> {
    for (power, suffix) in (1..).zip(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]) {
        if let Some(number) = text.strip_suffix(suffix) {
            return Some((number, Factor::Binary(power)));
        }
    }
    let decimal =
        [("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
    for (suffix, power) in decimal {
        if let Some(number) = text.strip_suffix(suffix) {
            return Some((number, Factor::Decimal(power)));
        }
    }
    match text.split_once(['e', 'E']) {
        Some((number, power)) => {
            Some((number, Factor::Decimal(power.parse().ok().filter(|p: &i32| p.abs() <= 18)?)))
        }
        None => Some((text, Factor::Decimal(0))),
    }
}

/// Thousandths as a quantity.
pub(crate) fn from_milli(milli: i128) -> String {
    if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") }
}

/// The same quantity as Kubernetes writes it: no fraction, the largest suffix of its family. `None` for what cannot
/// be read, and for exponents and parts of a thousandth, which stay as they are.
pub(crate) fn canonical(text: &str) -> Option<String> {
    if text.contains(['e', 'n', 'u']) || (text.contains('E') && !text.ends_with('E') && !text.ends_with("Ei"))
    {
        return None;
    }
    let value = milli(text)?;
    let binary = text.ends_with('i') && value.abs() >= 1_024_000 && value % 1000 == 0;
    if !binary && value % 1000 != 0 {
        return Some(format!("{value}m"));
    }
    let (step, suffixes) = if binary {
        (1024, ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
    } else {
        (1000, ["k", "M", "G", "T", "P", "E"])
    };
    let (mut number, mut suffix) = (value / 1000, "");
    for larger in suffixes {
        if number == 0 || number % step != 0 {
            break;
        }
        (number, suffix) = (number / step, larger);
    }
    Some(format!("{number}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::{canonical, from_milli, milli};

    #[test]
    fn quantities_are_written_in_one_way() {
        for (text, expected) in [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("0.5Ki", "512"),
            ("1500", "1500"),
            ("2000", "2k"),
            ("1E", "1E"),
            ("0", "0"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!((canonical("2e3"), canonical("lots"), canonical("1n")), (None, None, None));
    }

    #[test]
    fn quantities_are_read_in_thousandths() {
        for (text, expected) in [
            ("1", Some(1000)),
            ("500m", Some(500)),
            ("0.5", Some(500)),
            (".5", Some(500)),
            ("1Ki", Some(1_024_000)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("2e3", Some(2_000_000)),
            ("1k", Some(1_000_000)),
            ("1n", Some(1)),
            ("-2", Some(-2000)),
            ("1E", Some(1_000_000_000_000_000_000_000)),
            ("5E-1", Some(500)),
            ("", None),
            ("m", None),
            ("lots", None),
            ("1 Gi", None),
            ("1Gib", None),
            ("1..2", None),
        ] {
            assert_eq!(milli(text), expected, "{text:?}");
        }
        assert_eq!((from_milli(1500), from_milli(2000)), ("1500m".to_owned(), "2".to_owned()));
    }
}
