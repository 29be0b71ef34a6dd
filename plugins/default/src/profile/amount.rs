//! Amounts in KubeSpawner's notation.

use wasmspawner_sdk::quantity;

/// Bytes. As in JupyterHub, `K`, `M`, `G` and `T` are powers of 1024 and a fraction of a byte is cut off. All other
/// units are those of Kubernetes.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => return quantity::bytes(text).map_err(|error| error.to_string()),
    };
    let bytes = scaled(number, 1 << shift, u128::div_euclid);
    bytes.ok_or_else(|| format!("`{text}` is not an amount of memory, such as 512M, 2G or 2Gi"))
}

/// Thousandths of a CPU, rounded up as Kubernetes does.
pub(super) fn cpu_millis(text: &str) -> Result<u64, String> {
    if text.ends_with('m') {
        return quantity::cpu_millis(text).map_err(|error| error.to_string());
    }
    let millis = scaled(text, 1000, u128::div_ceil);
    millis.ok_or_else(|| format!("`{text}` is not an amount of CPU, such as 0.5, 2 or 500m"))
}

/// A decimal number times a unit, computed without floating point.
fn scaled(number: &str, unit: u128, divide: fn(u128, u128) -> u128) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let denominator = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let amount = divide(digits.parse::<u128>().ok()?.checked_mul(unit)?, denominator);
    u64::try_from(amount).ok().filter(|amount| i64::try_from(*amount).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_jupyterhub_and_kubernetes_do() {
        for (text, expected) in [
            ("1G", 1 << 30),
            ("512M", 512 << 20),
            ("1.5G", 3 << 29),
            ("0.3G", 322_122_547),
            ("2T", 2 << 40),
            ("4K", 4096),
            ("1Gi", 1 << 30),
            ("1073741824", 1 << 30),
            ("1073741824.0", 1 << 30),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "G", "1g", "-1G", "+1G", "1 G", "1e3G", "99999999T", "1.2.3G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cpus_are_numbers_or_kubernetes_amounts() {
        for (text, expected) in [("0.5", 500), ("2", 2000), ("500m", 500), ("0.0005", 1), ("3.7", 3700)] {
            assert_eq!(cpu_millis(text), Ok(expected), "{text}");
        }
        for text in ["", "two", "-1", "1G", "1e3"] {
            assert!(cpu_millis(text).is_err(), "{text}");
        }
    }
}
