use std::collections::BTreeMap;

use crate::bindings::types::{OptionEntry, Value};

/// The options of a lab, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options(BTreeMap<String, Value>);

impl Options {
    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The value of this name, if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// True if the option of this name is `true`.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.0.get(name), Some(Value::Boolean(true)))
    }

    /// Sets a value.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) {
        self.0.insert(name.into(), value);
    }

    /// Removes and returns a value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// All options, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl From<Vec<OptionEntry>> for Options {
    fn from(entries: Vec<OptionEntry>) -> Self {
        Self(entries.into_iter().map(|entry| (entry.name, entry.value)).collect())
    }
}

impl From<Options> for Vec<OptionEntry> {
    fn from(options: Options) -> Self {
        options.0.into_iter().map(|(name, value)| OptionEntry { name, value }).collect()
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}
