//! Resource quantities (`500m`, `2Gi`, `1e3`) as exact numbers of thousandths.

/// A quantity in thousandths of its unit, rounded up as Kubernetes does. `None` when the text is no quantity.
pub(crate) fn milli(text: &str) -> Option<i128> {
    let text = text.trim();
    let digits_end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits_end);
    let (numerator, denominator) = scale(suffix)?;
    let (mantissa, decimals) = decimal(number)?;
    let divisor = 10_i128.checked_pow(decimals)?.checked_mul(denominator)?;
    let scaled = mantissa.checked_mul(numerator)?.checked_mul(1000)?;
    Some(scaled.div_euclid(divisor) + i128::from(scaled.rem_euclid(divisor) != 0))
}

/// The multiplier of a suffix, as a fraction.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let binary = |power: u32| Some((1024_i128.pow(power), 1));
    let decimal = |power: u32| Some((1000_i128.pow(power), 1));
    match suffix {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "k" => decimal(1),
        "M" => decimal(2),
        "G" => decimal(3),
        "T" => decimal(4),
        "P" => decimal(5),
        "E" => decimal(6),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let exponent: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
            Some(if exponent < 0 { (1, power) } else { (power, 1) })
        }
    }
}

/// `1.25` as (125, 2).
fn decimal(number: &str) -> Option<(i128, u32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    Some((mantissa, u32::try_from(fraction.len()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::milli;

    #[test]
    fn reads_the_forms_of_kubernetes() {
        for (text, expect) in [
            ("1", Some(1000)),
            ("500m", Some(500)),
            ("0.1", Some(100)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("2k", Some(2_000_000)),
            ("1e3", Some(1_000_000)),
            ("5E-1", Some(500)),
            ("1n", Some(1)),
            (".5", Some(500)),
            ("0", Some(0)),
            ("-1", Some(-1000)),
            ("", None),
            ("Gi", None),
            ("1 Gi", None),
            ("1.2.3", None),
            ("1Xi", None),
            ("99999999999999999999999999999999Ei", None),
        ] {
            assert_eq!(milli(text), expect, "{text:?}");
        }
    }
}
