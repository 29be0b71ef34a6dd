//! Reads a configuration and collects all errors in it, each with its JSON pointer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::bindings::types::FieldError;

/// Reads `json` with `read`, as every call does. Returns the result and warnings.
///
/// # Errors
/// All errors in the configuration, in the order of reading.
pub fn read<T>(
    json: &str,
    read: impl FnOnce(&mut Section<'_>) -> T,
) -> Result<(T, Vec<String>), Vec<FieldError>> {
    open(json, Findings::default(), read)
}

/// Reads `json` with `read` once before the policy is used; see [`Section::is_check`].
///
/// # Errors
/// All errors in the configuration, in the order of reading.
pub fn check<T>(
    json: &str,
    read: impl FnOnce(&mut Section<'_>) -> T,
) -> Result<(T, Vec<String>), Vec<FieldError>> {
    open(json, Findings { is_check: true, ..Findings::default() }, read)
}

fn open<T>(
    json: &str,
    findings: Findings,
    read: impl FnOnce(&mut Section<'_>) -> T,
) -> Result<(T, Vec<String>), Vec<FieldError>> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| vec![FieldError::new("", format!("is not JSON: {error}"))])?;
    // This is never freed: an instance exists for one call only, and its memory ends with it.
    let value = ManuallyDrop::new(value);
    let findings = RefCell::new(findings);
    let result = Section::open(&value, &Place::Root, &findings, read);
    let Findings { problems, warnings, .. } = findings.into_inner();
    match result {
        Some(result) if problems.is_empty() => Ok((result, warnings)),
        _ => Err(problems),
    }
}

#[derive(Default)]
struct Findings {
    is_check: bool,
    problems: Vec<FieldError>,
    warnings: Vec<String>,
}

/// The place of a value. It is converted to a JSON pointer only for an error, because a policy reads its configuration
/// in every call.
enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// The place as a JSON pointer (RFC 6901).
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(parent, key) => format!("{}/{}", parent.pointer(), escaped(key)),
            Self::Index(parent, index) => format!("{}/{index}", parent.pointer()),
        }
    }
}

/// One object of the configuration. Keys that are never read are errors.
pub struct Section<'a> {
    entries: &'a Map<String, Value>,
    place: &'a Place<'a>,
    known: Vec<&'a str>,
    findings: &'a RefCell<Findings>,
}

impl<'a> Section<'a> {
    fn open<T>(
        value: &'a Value,
        place: &'a Place<'a>,
        findings: &'a RefCell<Findings>,
        read: impl FnOnce(&mut Section<'_>) -> T,
    ) -> Option<T> {
        let Value::Object(entries) = value else {
            let message = format!("must be an object, not {}", kind(value));
            findings.borrow_mut().problems.push(FieldError::new(place.pointer(), message));
            return None;
        };
        let mut section = Section { entries, place, known: Vec::with_capacity(16), findings };
        let result = read(&mut section);
        section.refuse_unknown_keys();
        Some(result)
    }

    /// A required value. An absent or wrong value is an error, and the type's default is returned.
    pub fn required<T: DeserializeOwned + Default>(&mut self, key: &'a str) -> T {
        if !self.entries.contains_key(key) {
            self.known.push(key);
            self.problem(key, "is missing");
            return T::default();
        }
        self.optional(key).unwrap_or_default()
    }

    /// An optional value.
    pub fn optional<T: DeserializeOwned>(&mut self, key: &'a str) -> Option<T> {
        let value = self.take(key)?;
        match T::deserialize(value) {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem(key, error.to_string());
                None
            }
        }
    }

    /// A value, or the type's default if it is absent.
    pub fn or_default<T: DeserializeOwned + Default>(&mut self, key: &'a str) -> T {
        self.optional(key).unwrap_or_default()
    }

    /// An optional text that is parsed, such as a quantity.
    pub fn parsed<T, E: std::fmt::Display>(
        &mut self,
        key: &'a str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        // Numbers are accepted in place of a text: `cpu: 2`.
        let text = match self.take(key)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            other => {
                self.problem(key, format!("must be a string, not {}", kind(other)));
                return None;
            }
        };
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem(key, error.to_string());
                None
            }
        }
    }

    /// A required text that is parsed. An absent or wrong text is an error, and the type's default is returned.
    pub fn required_parsed<T: Default, E: std::fmt::Display>(
        &mut self,
        key: &'a str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        if !self.has(key) {
            self.problem(key, "is missing");
        }
        self.parsed(key, parse).unwrap_or_default()
    }

    /// An optional object.
    pub fn section<T>(&mut self, key: &'a str, read: impl FnOnce(&mut Section<'_>) -> T) -> Option<T> {
        let value = self.take(key)?;
        Section::open(value, &Place::Key(self.place, key), self.findings, read)
    }

    /// A list of objects; empty if absent.
    pub fn list<T>(&mut self, key: &'a str, mut read: impl FnMut(&mut Section<'_>) -> T) -> Vec<T> {
        let Some(value) = self.take(key) else { return Vec::new() };
        let Value::Array(items) = value else {
            self.problem(key, format!("must be a list, not {}", kind(value)));
            return Vec::new();
        };
        let list = Place::Key(self.place, key);
        let one = |(index, item)| Section::open(item, &Place::Index(&list, index), self.findings, &mut read);
        items.iter().enumerate().filter_map(one).collect()
    }

    /// A map of objects by name; empty if absent.
    pub fn map<T>(
        &mut self,
        key: &'a str,
        mut read: impl FnMut(&mut Section<'_>) -> T,
    ) -> BTreeMap<String, T> {
        let Some(value) = self.take(key) else { return BTreeMap::new() };
        let Value::Object(entries) = value else {
            self.problem(key, format!("must be an object, not {}", kind(value)));
            return BTreeMap::new();
        };
        let map = Place::Key(self.place, key);
        let one = |(name, item): (&String, _)| {
            let value = Section::open(item, &Place::Key(&map, name), self.findings, &mut read)?;
            Some((name.clone(), value))
        };
        entries.iter().filter_map(one).collect()
    }

    /// True during the check before the policy is used. A policy reads its configuration in every call, so it should
    /// make expensive checks, such as of a regular expression, only here.
    pub fn is_check(&self) -> bool {
        self.findings.borrow().is_check
    }

    /// An optional text that may contain template fields, for [`crate::host::expand`].
    pub fn template(&mut self, key: &'a str) -> Option<String> {
        let text: String = self.optional(key)?;
        self.check_template(key, &text);
        Some(text)
    }

    /// Reports errors in a template in the value of `key`. Templates are checked only once, during
    /// [`Section::is_check`].
    pub fn check_template(&self, key: &str, text: &str) {
        if !self.is_check() {
            return;
        }
        if let Err(problem) = crate::host::expand(text) {
            self.problem(key, format!("`{text}` is not a valid template: {problem}"));
        }
    }

    /// True if the key is present.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Reports an error in the value of `key`; `""` means this object.
    pub fn problem(&self, key: &str, message: impl Into<String>) {
        let error = FieldError::new(self.pointer_to(key), message);
        self.findings.borrow_mut().problems.push(error);
    }

    /// Reports a value that is allowed but suspicious.
    pub fn warning(&self, key: &str, message: &str) {
        self.findings.borrow_mut().warnings.push(format!("{}: {message}", self.pointer_to(key)));
    }

    /// The JSON pointer of `key`; `""` means this object.
    pub fn pointer_to(&self, key: &str) -> String {
        if key.is_empty() { self.place.pointer() } else { Place::Key(self.place, key).pointer() }
    }

    /// The value of a key. `null` counts as absent.
    fn take(&mut self, key: &'a str) -> Option<&'a Value> {
        self.known.push(key);
        self.entries.get(key).filter(|value| !value.is_null())
    }

    fn refuse_unknown_keys(&self) {
        for key in self.entries.keys().filter(|key| !self.known.contains(&key.as_str())) {
            self.problem(key, format!("is not a key here; there are {}", self.known.join(", ")));
        }
    }
}

/// Escapes a key for a JSON pointer (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(json: &str) -> Vec<(String, String)> {
        let found = read(json, |config| {
            config.required::<String>("name");
            config.list("sizes", |size| {
                size.required::<u32>("cpu");
            });
            config.map("env", |entry| entry.or_default::<bool>("on"));
            config.section("more", |more| more.optional::<bool>("flag"));
        });
        found.unwrap_err().into_iter().map(|error| (error.field, error.message)).collect()
    }

    #[test]
    fn all_errors_are_reported_with_their_json_pointers() {
        let found = problems(
            r#"{"sizes": [{"cpu": 1}, {"cpu": "x", "ram": 2}, 3], "env": {"a/b": {"on": 1}}, "more": 4}"#,
        );
        let pointers: Vec<_> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(pointers, ["/name", "/sizes/1/cpu", "/sizes/1/ram", "/sizes/2", "/env/a~1b/on", "/more"]);
        assert_eq!(found[0].1, "is missing");
        assert_eq!(found[2].1, "is not a key here; there are cpu");
        assert_eq!(found[5].1, "must be an object, not a number");
    }

    #[test]
    fn a_configuration_that_is_not_a_json_object_is_one_error() {
        assert_eq!(problems("[")[0].0, "");
        assert_eq!(problems("[]"), [(String::new(), "must be an object, not a list".into())]);
    }
}
