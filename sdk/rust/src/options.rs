use std::collections::BTreeMap;
use std::fmt;

use crate::bindings::types::{Error, OptionEntry, Value};

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

    /// The value of this name as a number of things; 0 if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid) if it is not a whole number, or negative, or above 4,294,967,295.
    pub fn count(&self, name: &str) -> Result<u32, Error> {
        match self.0.get(name) {
            None => Ok(0),
            Some(Value::Integer(count)) => u32::try_from(*count)
                .map_err(|_| Error::invalid(name, format!("must be from 0 to {}, and is {count}", u32::MAX))),
            Some(_) => Err(Error::invalid(name, "must be a whole number")),
        }
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

/// Writes the value as its user would type it: a text without quotes, `true` or `false`, or a number.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_whole_number_that_is_not_negative() {
        let counted = |value: Value| {
            let mut options = Options::default();
            options.insert("gpus", value);
            options.count("gpus").map_err(|error| format!("{error:?}"))
        };
        assert_eq!(Options::default().count("gpus"), Ok(0));
        assert_eq!(counted(4_i64.into()), Ok(4));
        for (value, problem) in [
            (Value::from(-1_i64), "from 0 to 4294967295, and is -1"),
            (Value::from(1_i64 << 32), "and is 4294967296"),
            (Value::from(1.5), "must be a whole number"),
            (Value::from("2"), "must be a whole number"),
        ] {
            let told = counted(value).unwrap_err();
            assert!(told.contains(problem) && told.contains("gpus"), "{told}");
        }
    }
}
