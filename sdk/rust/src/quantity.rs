//! Amounts as Kubernetes writes them: `500m`, `2`, `4Gi`.

/// The text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError(String);

impl std::fmt::Display for QuantityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QuantityError {}

/// The number of bytes of an amount of memory or storage: `512Mi`, `2Gi`, `1.5G`, `1000`.
///
/// # Errors
/// If the amount is negative, is not a quantity of Kubernetes, or is not a whole number of bytes below 2^63.
pub fn bytes(text: &str) -> Result<u64, QuantityError> {
    scaled(text, 0).ok_or_else(|| {
        QuantityError(format!("`{text}` is not an amount of bytes, such as 512Mi, 2Gi or 1.5G"))
    })
}

/// The number of thousandths of a CPU: `500m`, `2`, `0.5`.
///
/// # Errors
/// If the amount is negative, is not a quantity of Kubernetes, or is not a whole number of thousandths below 2^63.
pub fn cpu_millis(text: &str) -> Result<u64, QuantityError> {
    scaled(text, 3)
        .ok_or_else(|| QuantityError(format!("`{text}` is not an amount of CPU, such as 500m, 2 or 0.5")))
}

/// The amount for people, in CPUs with at most one decimal: `1.5` for 1500 thousandths.
pub fn show_cpus(millis: u64) -> String {
    decimal(millis, 1000)
}

/// The amount for people, in MiB or GiB with at most one decimal: `4 GiB`, `512 MiB`.
pub fn show_bytes(bytes: u64) -> String {
    let (unit, size) = if bytes >= 1 << 30 { ("GiB", 1 << 30) } else { ("MiB", 1 << 20) };
    format!("{} {unit}", decimal(bytes, size))
}

/// Formats the quotient of `amount` and `unit` with at most one decimal.
fn decimal(amount: u64, unit: u64) -> String {
    let tenths = (u128::from(amount) * 10 + u128::from(unit) / 2) / u128::from(unit);
    if tenths.is_multiple_of(10) {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

/// Multiplies the amount by ten to the power of `places`, exactly. Returns `None` if the result is not a whole number
/// below 2^63.
fn scaled(text: &str, places: i32) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (factor, exponent) = unit(suffix)?;
    let amount = digits.checked_mul(factor)?;
    let exponent = exponent.checked_add(places)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
    let amount = if exponent >= 0 {
        amount.checked_mul(power)?
    } else {
        amount.is_multiple_of(power).then_some(amount / power)?
    };
    i64::try_from(amount).ok().and_then(|amount| u64::try_from(amount).ok())
}

/// The value of a suffix: a factor, and an exponent of ten.
fn unit(suffix: &str) -> Option<(u128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        exponent => (1, exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The table with which all packages that read quantities are tested.
    #[test]
    fn amounts_are_those_of_kubernetes() {
        let table = include_str!("../../../tests/tables/quantities.json");
        for row in serde_json::from_str::<Vec<Value>>(table).unwrap() {
            let text = row["text"].as_str().unwrap();
            let millis = row["millis"].to_string().trim_matches('"').parse::<i128>().ok();
            // The table rounds up amounts that are finer than a thousandth. Here they are not amounts.
            let finer = text.ends_with(['n', 'u']);
            let expected = millis.filter(|_| !finer).and_then(|millis| u64::try_from(millis).ok());
            assert_eq!(
                cpu_millis(text).ok(),
                expected.filter(|millis| i64::try_from(*millis).is_ok()),
                "{text}"
            );
            let whole = millis.filter(|millis| !finer && millis % 1000 == 0).map(|millis| millis / 1000);
            assert_eq!(bytes(text).ok(), whole.and_then(|bytes| u64::try_from(bytes).ok()), "{text}");
        }
    }

    #[test]
    fn amounts_that_are_too_large_or_too_fine_are_refused() {
        for text in ["9223372036854775808", "8Ei", "99999999P", "1e99", "1e2147483647", "0.3"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in ["0.0005", "1e-2147483648"] {
            assert!(cpu_millis(text).is_err(), "{text}");
        }
        assert_eq!(bytes("7Ei"), Ok(7 << 60));
        assert_eq!(bytes("9223372036854775807"), Ok(u64::try_from(i64::MAX).unwrap()));
    }
}
