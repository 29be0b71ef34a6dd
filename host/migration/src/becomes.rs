//! What may become of a key of the chart, or of a setting of KubeSpawner.

use serde_json::Value;

use crate::draft::Draft;

/// What becomes of a key with everything below it.
#[derive(Clone, Copy)]
pub(crate) enum Becomes {
    /// One of KubeSpawner's settings.
    Setting(&'static str),
    /// A key of the service's configuration, with the same value.
    Service(&'static str),
    /// The Hub goes on reading it; why.
    Stays(&'static str),
    /// Nothing has to take its place; why.
    NotNeeded(&'static str),
    /// A person decides: what it did, and the ways to have that here.
    Open(&'static str, &'static str),
    /// The profiles.
    Profiles,
    /// It needs a conversion, which also reports.
    Converted(fn(&mut Draft<'_>, &str, &Value)),
}

/// A scalar as Helm writes it into a text.
pub(crate) fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
