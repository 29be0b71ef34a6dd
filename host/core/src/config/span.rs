//! Spans of time in the configuration, written `30s`, `10m`, `48h`.

use jiff::SignedDuration;

use super::InvalidSetting;

/// A positive span of time within what makes sense here.
pub(super) fn check_span(
    key: &str,
    span: SignedDuration,
    longest: SignedDuration,
) -> Result<(), InvalidSetting> {
    if span.is_positive() && span <= longest {
        return Ok(());
    }
    Err(InvalidSetting::new(
        key,
        format!("{span:#} is out of range; write more than 0s and at most {longest:#}"),
    ))
}
