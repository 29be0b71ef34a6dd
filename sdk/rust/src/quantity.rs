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
/// If the amount is negative, has an unknown unit or is not a whole number of bytes below 2^63.
pub fn bytes(text: &str) -> Result<u64, QuantityError> {
    const UNITS: [(&str, u64); 12] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("k", 1_000),
        ("K", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("", 1),
    ];
    scaled(text, &UNITS)
        .ok_or_else(|| QuantityError(format!("`{text}` is no amount of bytes, such as 512Mi, 2Gi or 1.5G")))
}

/// The number of thousandths of a CPU: `500m`, `2`, `0.5`.
///
/// # Errors
/// If the amount is negative, has an unknown unit or is not a whole number of thousandths.
pub fn cpu_millis(text: &str) -> Result<u64, QuantityError> {
    scaled(text, &[("m", 1), ("", 1000)])
        .ok_or_else(|| QuantityError(format!("`{text}` is no amount of CPU, such as 500m, 2 or 0.5")))
}

/// A decimal number times its unit, computed exactly.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let factor = units.iter().find(|(unit, _)| *unit == &text[digits.len()..])?.1;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || (whole.is_empty() && fraction.is_empty()) || fraction.len() > 9 {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let denominator = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let amount = whole.checked_mul(denominator)?.checked_add(fraction)?.checked_mul(factor.into())?;
    let exact = amount % denominator == 0;
    let amount = u64::try_from(amount / denominator).ok()?;
    (exact && i64::try_from(amount).is_ok()).then_some(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_with_and_without_units() {
        for (text, expected) in [
            ("2Gi", 2 << 30),
            ("512Mi", 512 << 20),
            ("1.5G", 1_500_000_000),
            ("0", 0),
            ("10", 10),
            ("0.5Ki", 512),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn cpu_in_thousandths() {
        for (text, expected) in [("500m", 500), ("2", 2000), ("0.25", 250), (".5", 500)] {
            assert_eq!(cpu_millis(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "Gi", "-1", "+1", "1e3", "2gb", "1.2.3", "0.3", "99999999P", "½", "1 Gi", "."] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in ["0.0005", "1Gi", "", "m"] {
            assert!(cpu_millis(text).is_err(), "{text}");
        }
    }
}
