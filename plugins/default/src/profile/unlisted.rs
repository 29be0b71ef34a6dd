use regex_lite::Regex;
use serde_json::Value;
use wasmspawner_sdk::form::{Field, FieldKind, TextInput};
use wasmspawner_sdk::{Error, Section};

use super::overrides::Overrides;

/// Where what the user typed goes.
const PLACE: &str = "{value}";
/// Characters that may be typed.
const LONGEST: u32 = 512;

/// A choice that the user types in.
pub(super) struct Unlisted {
    display_name: Option<String>,
    pub(super) name_in_choices: String,
    pattern: Option<String>,
    message: Option<String>,
    overrides: Overrides,
}

impl Unlisted {
    /// `None` where it is not enabled.
    pub(super) fn read(entry: &mut Section<'_>) -> Option<Self> {
        let enabled = entry.or_default("enabled");
        let mut unlisted = Self {
            display_name: entry.optional("display_name"),
            name_in_choices: entry.optional("display_name_in_choices").unwrap_or_else(|| "Other...".into()),
            pattern: entry.optional("validation_regex"),
            message: entry.optional("validation_message"),
            overrides: entry.section("kubespawner_override", Overrides::read).unwrap_or_default(),
        };
        if let Some(pattern) = unlisted.pattern.as_ref().filter(|_| entry.is_check())
            && let Err(problem) = whole(pattern)
        {
            entry.problem("validation_regex", problem);
        }
        if enabled && entry.is_check() {
            unlisted.check_places(entry);
        }
        enabled.then_some(unlisted)
    }

    /// The typed value goes somewhere, and everywhere the operator wrote.
    fn check_places(&mut self, entry: &mut Section<'_>) {
        let written = entry.optional::<Value>("kubespawner_override").as_ref().map_or(0, places);
        let filled = self.overrides.texts().iter().filter(|text| text.contains(PLACE)).count();
        if filled == 0 {
            let problem =
                "does not say where the typed value goes; write {value}, as in `image: \"{value}\"`";
            entry.problem("kubespawner_override", problem);
        }
        if written > filled {
            let problem = "has {value} where it cannot stand; it can in `image`, `cmd`, `args`, `working_dir` and the \
                           values of `environment`, `extra_labels`, `extra_annotations` and `node_selector`";
            entry.problem("kubespawner_override", problem);
        }
    }

    pub(super) fn field(&self, name: String, option: &str) -> Field {
        let input = TextInput {
            default: String::new(),
            placeholder: None,
            max_length: Some(LONGEST),
            pattern: self.pattern.clone(),
        };
        let label = self.display_name.clone().unwrap_or_else(|| format!("{option}: other"));
        let field = Field::new(name, label, FieldKind::Text(input)).required();
        match &self.message {
            Some(message) => field.help(message),
            None => field,
        }
    }

    /// The overrides with `typed` in their places. It is put in once, after everything else was read: a `{value}`, or
    /// any other field, in what was typed is just text.
    pub(super) fn with(&self, field: &str, typed: &str) -> Result<Overrides, Error> {
        self.accept(typed).map_err(|message| Error::invalid(field, message))?;
        let mut overrides = self.overrides.clone();
        for text in overrides.texts() {
            *text = text.replace(PLACE, typed);
        }
        if overrides.image().is_some_and(|image| !may_be_an_image(image)) {
            return Err(Error::invalid(field, "gives no image, such as registry/repository:tag"));
        }
        Ok(overrides)
    }

    fn accept(&self, typed: &str) -> Result<(), String> {
        if typed.trim().is_empty() {
            return Err("must not be empty".into());
        }
        let Some(pattern) = &self.pattern else { return Ok(()) };
        if whole(pattern)?.is_match(typed) {
            return Ok(());
        }
        Err(self.message.clone().unwrap_or_else(|| format!("must match {pattern}")))
    }
}

/// How many texts have a place, in values and names alike.
fn places(value: &Value) -> usize {
    match value {
        Value::String(text) => usize::from(text.contains(PLACE)),
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Object(entries) => {
            entries.iter().map(|(name, value)| usize::from(name.contains(PLACE)) + places(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// The expression, matching all of a text or nothing of it. It must stand on its own first, so that no bracket of it
/// pairs with one of ours.
fn whole(pattern: &str) -> Result<Regex, String> {
    let problem = |error: regex_lite::Error| {
        format!(
            "`{pattern}` is no regular expression here: {error}; lookaround, backreferences and \\p{{..}} are missing"
        )
    };
    Regex::new(pattern).map_err(problem)?;
    Regex::new(&format!(r"\A(?:{pattern})\z")).map_err(problem)
}

/// Characters that an image reference is made of, as the service checks them; here a user can still be told.
fn may_be_an_image(reference: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    reference.starts_with(|first: char| first.is_ascii_alphanumeric()) && reference.bytes().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_matches_the_whole_text() {
        for (pattern, text, expected) in [
            (r"quay\.io/.+:.+", "quay.io/a/b:1", true),
            (r"quay\.io/.+:.+", "evil.example/quay.io/a/b:1", false),
            ("a|ab", "ab", true),
            ("a|b", "ax", false),
            ("^a$", "a", true),
            ("a", "a\n", false),
            ("(?i)lab", "LAB", true),
        ] {
            assert_eq!(whole(pattern).unwrap().is_match(text), expected, "{pattern} {text}");
        }
        for pattern in ["(", "a)|(b", r"(?=a)", r"(a)\1", r"\p{L}", "(?x)a # comment"] {
            assert!(whole(pattern).is_err(), "{pattern}");
        }
    }
}
