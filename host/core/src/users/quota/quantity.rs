use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubernetesQuantity;

/// An amount as Kubernetes writes it ("Quantity" in its API conventions), exact to a billionth and never negative.
///
/// An amount has a decimal suffix (`500m`, `2`, `3k`) or a binary one (`512Mi`). The canonical form uses the largest
/// suffix that needs no fraction.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: u128,
    binary: bool,
}

const NANOS: u128 = 1_000_000_000;

/// Decimal suffixes and their values in billionths, largest first.
const DECIMAL: [(&str, u128); 10] = [
    ("E", NANOS * 1_000_000_000_000_000_000),
    ("P", NANOS * 1_000_000_000_000_000),
    ("T", NANOS * 1_000_000_000_000),
    ("G", NANOS * 1_000_000_000),
    ("M", NANOS * 1_000_000),
    ("k", NANOS * 1000),
    ("", NANOS),
    ("m", 1_000_000),
    ("u", 1000),
    ("n", 1),
];

/// Binary suffixes and their values, largest first.
const BINARY: [(&str, u128); 6] =
    [("Ei", 1 << 60), ("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];

/// Kubernetes' largest amount, 2^63-1.
const MAX_AMOUNT: u128 = (i64::MAX as u128) * NANOS;

/// The error for a text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity: {problem}; write it like 2, 1.5, 500m or 8Gi")]
pub struct InvalidQuantity {
    /// The refused text.
    pub text: String,
    /// The problem with the text.
    pub problem: &'static str,
}

impl Quantity {
    /// An amount in thousandths, such as of CPUs.
    pub fn millis(millis: u64) -> Self {
        Self { nanos: u128::from(millis) * 1_000_000, binary: false }
    }

    /// An amount in bytes.
    pub fn bytes(bytes: u64) -> Self {
        Self { nanos: u128::from(bytes) * NANOS, binary: true }
    }

    /// A whole number.
    pub fn count(count: u64) -> Self {
        Self { nanos: u128::from(count) * NANOS, binary: false }
    }

    /// The amount in thousandths, if it is a whole number of them that fits into 64 bits.
    pub fn to_millis(self) -> Option<u64> {
        self.nanos.is_multiple_of(1_000_000).then_some(self.nanos / 1_000_000)?.try_into().ok()
    }

    /// The amount as a whole number (of bytes), if it is one that fits into 64 bits.
    pub fn to_units(self) -> Option<u64> {
        self.nanos.is_multiple_of(NANOS).then_some(self.nanos / NANOS)?.try_into().ok()
    }

    /// The amount as a plain decimal number: `4`, `0.5`.
    pub fn decimal(self) -> String {
        let (whole, fraction) = (self.nanos / NANOS, self.nanos % NANOS);
        if fraction == 0 {
            return whole.to_string();
        }
        format!("{whole}.{}", format!("{fraction:09}").trim_end_matches('0'))
    }
}

/// Two quantities are equal if they are the same amount, however they are written.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        if self.binary && self.nanos.is_multiple_of(NANOS) {
            let units = self.nanos / NANOS;
            return match BINARY.iter().find(|(_, scale)| units.is_multiple_of(*scale)) {
                Some((suffix, scale)) => write!(f, "{}{suffix}", units / scale),
                None => write!(f, "{units}"),
            };
        }
        match DECIMAL.iter().find(|(_, scale)| self.nanos.is_multiple_of(*scale)) {
            Some((suffix, scale)) => write!(f, "{}{suffix}", self.nanos / scale),
            None => Ok(()),
        }
    }
}

impl From<Quantity> for KubernetesQuantity {
    fn from(quantity: Quantity) -> Self {
        Self(quantity.to_string())
    }
}

impl FromStr for Quantity {
    type Err = InvalidQuantity;

    /// Parses every form that Kubernetes accepts, including exponents. Amounts that are not whole billionths are
    /// refused; Kubernetes would round them up.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |problem| InvalidQuantity { text: text.to_owned(), problem };
        let text = text.strip_prefix('+').unwrap_or(text);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(refuse("it has no number"));
        }
        let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| refuse("it is too large"))?;
        let (scale, binary) = scale(suffix).ok_or_else(|| refuse("its suffix is unknown"))?;
        let divisor = u32::try_from(fraction.len()).ok().and_then(|places| 10_u128.checked_pow(places));
        let divisor = divisor.ok_or_else(|| refuse("it is too fine"))?;
        let scaled = digits.checked_mul(scale).ok_or_else(|| refuse("it is too large"))?;
        if !scaled.is_multiple_of(divisor) {
            return Err(refuse("it is finer than a billionth"));
        }
        let nanos = scaled / divisor;
        if nanos > MAX_AMOUNT { Err(refuse("it is too large")) } else { Ok(Self { nanos, binary }) }
    }
}

/// Returns the value of a suffix in billionths, and whether it is binary.
fn scale(suffix: &str) -> Option<(u128, bool)> {
    if let Some((_, scale)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((scale * NANOS, true));
    }
    if let Some((_, scale)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((*scale, false));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = u32::try_from(exponent.checked_add(9)?).ok()?;
    Some((10_u128.checked_pow(power)?, false))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The table that all packages with quantities are tested with.
    #[test]
    fn amounts_are_those_of_kubernetes() {
        let table = include_str!("../../../../../tests/tables/quantities.json");
        for row in serde_json::from_str::<Vec<serde_json::Value>>(table).unwrap() {
            let text = row["text"].as_str().unwrap();
            let millis = row["millis"].to_string().trim_matches('"').parse::<i128>().ok();
            let quantity = text.parse::<Quantity>().ok();
            // Negative amounts are refused, and so are amounts larger than Kubernetes can store exactly.
            let millis = millis.and_then(|millis| u128::try_from(millis).ok());
            assert_eq!(quantity.map(|quantity| quantity.nanos.div_ceil(1_000_000)), millis, "{text}");
            let Some(quantity) = quantity else { continue };
            if !text.contains(['e', 'E']) {
                assert_eq!(quantity.to_string(), row["canonical"].as_str().unwrap(), "{text}");
            }
            assert_eq!(quantity.to_string().parse(), Ok(quantity), "{text}");
        }
    }

    #[test]
    fn amounts_that_are_too_large_or_too_fine_are_refused() {
        for text in ["9E30", "1e99", "10E", "0.0000000001"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_amount_is_printed_as_a_decimal_number() {
        assert_eq!(Quantity::millis(4000).decimal(), "4");
        assert_eq!(Quantity::millis(250).decimal(), "0.25");
    }

    proptest! {
        #[test]
        fn millis_and_bytes_survive_printing_and_parsing(millis in 0..1_u64 << 53, bytes in 0..1_u64 << 62) {
            let cpu: Quantity = Quantity::millis(millis).to_string().parse().unwrap();
            prop_assert_eq!(cpu.to_millis(), Some(millis));
            let memory: Quantity = Quantity::bytes(bytes).to_string().parse().unwrap();
            prop_assert_eq!(memory.to_units(), Some(bytes));
        }

        #[test]
        fn any_text_is_parsed_without_a_panic(text in "\\PC{0,20}") {
            let _ = text.parse::<Quantity>();
        }
    }
}
