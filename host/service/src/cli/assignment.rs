//! `NAME=VALUE` on the command line.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use serde_json::{Map, Value as Json};
use wasmspawner_core::names::EnvName;
use wasmspawner_core::policy::Options;
use wasmspawner_core::policy::form;

/// `NAME=VALUE`; the value may be empty, and may contain further `=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    name: String,
    value: String,
}

impl std::str::FromStr for Assignment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err("write NAME=VALUE"),
        }
    }
}

/// Returns the submission of a spawn form, as a browser would send it.
pub(super) fn submission(given: &[Assignment]) -> anyhow::Result<Map<String, Json>> {
    let mut submission = Map::new();
    for Assignment { name, value } in given {
        if submission.insert(name.clone(), value.clone().into()).is_some() {
            bail!("--option {name} is given twice; an option has one value");
        }
    }
    Ok(submission)
}

/// Returns the same submission as the API's `Options`.
pub(super) fn options(given: &[Assignment]) -> anyhow::Result<Options> {
    form::options(&submission(given)?).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(|error| format!("--option {error}")).collect();
        anyhow!("{}", lines.join("\n"))
    })
}

/// Returns environment variables. If a name is given twice, the last value counts.
pub(super) fn env(given: &[Assignment]) -> anyhow::Result<BTreeMap<EnvName, String>> {
    let parsed = given.iter().map(|Assignment { name, value }| Ok((EnvName::parse(name)?, value.clone())));
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmspawner_core::policy::Value;

    #[test]
    fn an_assignment_is_split_at_the_first_equals_sign() {
        for (text, expected) in [
            ("size=small", Some(("size", "small"))),
            ("A=", Some(("A", ""))),
            ("A=b=c", Some(("A", "b=c"))),
            ("=x", None),
            ("size", None),
            ("", None),
        ] {
            let parsed = text.parse::<Assignment>().ok();
            let expected =
                expected.map(|(name, value)| Assignment { name: name.into(), value: value.into() });
            assert_eq!(parsed, expected, "{text:?}");
        }
    }

    #[test]
    fn options_are_parsed_like_a_submitted_form() {
        let given = ["size=small".parse().unwrap(), "debug=true".parse().unwrap()];
        let expected = [("debug", Value::Boolean(true)), ("size", Value::Text("small".into()))];
        assert_eq!(options(&given).unwrap(), expected.map(|(key, value)| (key.to_owned(), value)).into());
        let twice = ["size=a".parse().unwrap(), "size=b".parse().unwrap()];
        assert_eq!(
            options(&twice).unwrap_err().to_string(),
            "--option size is given twice; an option has one value"
        );
    }

    #[test]
    fn an_invalid_variable_name_is_refused() {
        assert!(env(&["1A=x".parse().unwrap()]).unwrap_err().to_string().contains("\"1A\""));
    }
}
