//! Checks the value of a number field.

use super::refused;
use crate::bindings::types::Value;
use crate::form::{Field, NumberInput};

/// The largest whole number up to which JavaScript represents every whole number exactly.
const MAX_WHOLE: f64 = 9_007_199_254_740_991.0;

/// Returns the submitted number, or else the default, if it is in the field's range and on one of its steps.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "checked to be small and whole"
)]
pub(super) fn read(field: &Field, input: &NumberInput, submitted: Option<&Value>) -> Result<Value, String> {
    let number = match submitted {
        None => Some(input.default),
        Some(Value::Number(number)) => Some(*number),
        Some(Value::Integer(number)) => Some(*number as f64),
        Some(Value::Text(text)) if text.is_empty() => {
            return Err(format!("{} must not be empty: enter a number", field.label));
        }
        Some(Value::Text(text)) => parse_number(text),
        Some(Value::Boolean(_)) => None,
    };
    let Some(number) = number.filter(|number| number.is_finite()) else {
        let value = submitted.cloned().unwrap_or(Value::Number(input.default));
        return Err(refused(field, &value, "it must be a number"));
    };
    let refused = |remedy: String| Err(refused(field, &Value::Number(number), remedy));
    if let Some(minimum) = input.minimum.filter(|minimum| number < *minimum) {
        return refused(format!("it must be at least {minimum}"));
    }
    if let Some(maximum) = input.maximum.filter(|maximum| number > *maximum) {
        return refused(format!("it must be at most {maximum}"));
    }
    // Steps begin at the minimum, or else at the default, as in HTML.
    let base = input.minimum.unwrap_or(input.default);
    if let Some(step) = input.step.filter(|step| !is_on_step(number, *step, base)) {
        return refused(allowed(step, base));
    }
    let whole = number.fract() == 0.0 && number.abs() <= MAX_WHOLE;
    Ok(if whole { Value::Integer(number as i64) } else { Value::Number(number) })
}

/// Describes the numbers that a step allows.
fn allowed(step: f64, base: f64) -> String {
    if step.total_cmp(&1.0).is_eq() && base.fract() == 0.0 {
        "it must be a whole number".into()
    } else if base == 0.0 {
        format!("it must be a multiple of {step}")
    } else {
        format!("it must be {base} plus a multiple of {step}")
    }
}

/// Parses a number in the syntax of HTML ("valid floating-point number"), which browsers submit.
fn parse_number(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let is_mantissa = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole.is_empty() || is_digits(whole)) && is_digits(fraction),
        None => is_digits(mantissa),
    };
    let is_exponent =
        exponent.is_none_or(|digits| is_digits(digits.strip_prefix(['-', '+']).unwrap_or(digits)));
    (is_mantissa && is_exponent).then(|| text.parse().ok()).flatten()
}

/// Returns true if the number is a whole number of steps away from the base. The tolerance is that of browsers for a
/// step without an exact binary form (a 2^24th of it), and that of the numbers themselves.
fn is_on_step(number: f64, step: f64, base: f64) -> bool {
    let distance = (number - base).abs();
    let steps = distance / step + 0.5;
    // A number of steps this large, possibly infinite, is whole already.
    let rest = if steps > 2_f64.powi(53) { 0.0 } else { (distance - steps.floor() * step).abs() };
    let tolerance = step / 2_f64.powi(24) + (number.abs() + base.abs()) / 2_f64.powi(51);
    rest <= tolerance
}
