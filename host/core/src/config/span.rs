//! Durations in the configuration, written `30s`, `10m`, `48h`.

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer};

use super::InvalidSetting;

/// Checks that a duration is positive and at most `longest`.
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

/// Parses a duration. The error says how to write one.
pub(in crate::config) fn parse<'de, D: Deserializer<'de>>(text: D) -> Result<SignedDuration, D::Error> {
    read(&String::deserialize(text)?)
}

/// Like [`parse`], for a duration that may be `null`.
pub(in crate::config) fn parse_optional<'de, D: Deserializer<'de>>(
    text: D,
) -> Result<Option<SignedDuration>, D::Error> {
    let text: Option<String> = Option::deserialize(text)?;
    text.map(|text| read(&text)).transpose()
}

fn read<E: serde::de::Error>(text: &str) -> Result<SignedDuration, E> {
    text.parse()
        .map_err(|_| E::custom(format!("{text:?} is not a span of time; write it as 30s, 10m or 48h")))
}
