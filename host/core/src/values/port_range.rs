//! A port, or a range of ports, as an operator writes it.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One port or several: `8787` or `9000-9099`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(RangeInclusive<u16>);

/// The text is neither a port nor a range of ports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a port from 1 to 65535 nor a range such as \"9000-9099\"")]
pub struct InvalidPortRange(String);

impl PortRange {
    /// Parses a port, or two ports with a `-` between them.
    pub fn parse(text: &str) -> Result<Self, InvalidPortRange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(InvalidPortRange(text.to_owned())),
        }
    }

    /// Creates a range. `first` must not be above `last`.
    pub(crate) fn new(first: u16, last: u16) -> Self {
        Self(first..=last)
    }

    /// The first port.
    pub fn first(&self) -> u16 {
        *self.0.start()
    }

    /// The last port.
    pub fn last(&self) -> u16 {
        *self.0.end()
    }

    /// Returns true if the port is in the range.
    pub fn contains(&self, port: u16) -> bool {
        self.0.contains(&port)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The serialized form: a number in YAML, or a text.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for PortRange {
    fn schema_name() -> Cow<'static, str> {
        "PortRange".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A port such as 8787, or a range such as \"9000-9099\".",
            "type": ["integer", "string"],
            "minimum": 1,
            "maximum": 65535,
            "pattern": "^[0-9]{1,5}(-[0-9]{1,5})?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_and_a_range_are_read_and_written() {
        for (yaml, written) in
            [("8787", "8787"), ("'8787'", "8787"), ("9000-9099", "9000-9099"), ("1-65535", "1-65535")]
        {
            let range: PortRange = serde_saphyr::from_str(yaml).unwrap();
            assert_eq!(range.to_string(), written);
            assert_eq!(serde_json::to_value(&range).unwrap(), written);
        }
        let range = PortRange::parse("9000-9099").unwrap();
        assert!(
            range.contains(9000) && range.contains(9099) && !range.contains(8999) && !range.contains(9100)
        );
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "0", "65536", "99999999999", "9099-9000", "0-80", "80-", "-80", "a", "1-2-3", "*"] {
            assert!(PortRange::parse(text).is_err(), "{text}");
        }
        let error = serde_saphyr::from_str::<PortRange>("70000").unwrap_err().to_string();
        assert!(error.contains("neither a port from 1 to 65535"), "{error}");
    }
}
