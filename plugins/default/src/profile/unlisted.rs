use serde_json::Value;
use wasmspawner_sdk::form::{Choice, Field, FieldKind, TextInput};
use wasmspawner_sdk::{Error, Section, pattern};

use super::audience::Audience;
use super::expression;
use super::overrides::{Overrides, Reading, Written};
use super::settings;
use crate::template;

/// The placeholder for the typed value.
const PLACE: &str = "{value}";
/// The maximum length of a typed value in characters.
const MAX_TYPED_LENGTH: u32 = 512;

/// A choice whose value the user types.
pub(super) struct Unlisted {
    display_name: Option<String>,
    name_in_choices: String,
    description_in_choices: Option<String>,
    pub(super) audience: Audience,
    pattern: Option<String>,
    message: Option<String>,
    overrides: Overrides,
}

impl Unlisted {
    /// Reads the choice; `None` if it is not enabled.
    pub(super) fn read(entry: &mut Section<'_>) -> Option<Self> {
        let enabled = entry.or_default("enabled");
        let mut unlisted = Self {
            display_name: entry.optional("display_name"),
            name_in_choices: entry.optional("display_name_in_choices").unwrap_or_else(|| "Other...".into()),
            description_in_choices: entry.optional("description_in_choices"),
            audience: Audience::read(entry),
            pattern: entry.optional::<String>("validation_regex").filter(|pattern| !pattern.is_empty()),
            message: entry.optional("validation_message"),
            overrides: entry.section("kubespawner_override", overrides).unwrap_or_default(),
        };
        if let Some(pattern) = unlisted.pattern.as_ref().filter(|_| entry.is_check())
            && let Err(problem) = expression::check(pattern)
        {
            entry.problem("validation_regex", problem);
        }
        if enabled && entry.is_check() {
            unlisted.check_places(entry);
        }
        enabled.then_some(unlisted)
    }

    /// Checks that the typed value is used, and that it is used only at allowed places.
    fn check_places(&mut self, entry: &mut Section<'_>) {
        let written = entry.optional::<Value>("kubespawner_override").as_ref().map_or(0, places);
        let texts = self.overrides.texts();
        let filled = texts.iter().filter(|text| text.reading.may_be_typed() && is_typed(text.text)).count();
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

    /// The choice after which the text is typed.
    pub(super) fn choice(&self, value: &str) -> Choice {
        Choice {
            description: self.description_in_choices.clone(),
            ..Choice::new(value, &self.name_in_choices)
        }
    }

    pub(super) fn field(&self, name: String, option: &str) -> Field {
        let input = TextInput {
            default: String::new(),
            placeholder: None,
            max_length: Some(MAX_TYPED_LENGTH),
            // A pattern that only Python can read is checked by `accept` alone.
            pattern: self.pattern.clone().filter(|pattern| pattern::check(pattern).is_ok()),
        };
        let label = self.display_name.clone().unwrap_or_else(|| format!("{option}: other"));
        let field = Field::new(name, label, FieldKind::Text(input)).required();
        match &self.message {
            Some(message) => field.help(message),
            None => field,
        }
    }

    /// The overrides with the typed value in its places. It is inserted last and only once: a `{value}`, or any other
    /// field, in the typed text is plain text.
    pub(super) fn with(&self, field: &str, typed: &str) -> Result<Overrides, Error> {
        self.accept(typed).map_err(|message| Error::invalid(field, message))?;
        let mut overrides = self.overrides.clone();
        for Written { reading, text, .. } in overrides.texts() {
            let mut filled = Vec::new();
            for piece in pieces_of(reading, text) {
                filled.push(fill(reading, piece)?);
            }
            *text = filled.join(typed);
        }
        if overrides.image().is_some_and(|image| !may_be_an_image(image)) {
            return Err(Error::invalid(field, "gives no image, such as registry/repository:tag"));
        }
        Ok(overrides)
    }

    /// The overrides before a user types the value; `None` if it is a part of the image. A label of the node selector
    /// whose value is typed is removed, because the lab may select any value of it.
    pub(super) fn without_typed_text(&self) -> Option<Overrides> {
        if self.overrides.image().is_some_and(is_typed) {
            return None;
        }
        let mut overrides = self.overrides.clone();
        overrides.remove_labels_of_nodes(is_typed);
        Some(overrides)
    }

    fn accept(&self, typed: &str) -> Result<(), String> {
        if typed.trim().is_empty() {
            return Err("must not be empty".into());
        }
        let Some(pattern) = &self.pattern else { return Ok(()) };
        if expression::whole(pattern)?.is_match(typed) {
            return Ok(());
        }
        Err(self.message.clone().unwrap_or_else(|| format!("must match {pattern}")))
    }
}

/// Reads overrides that contain a typed value.
fn overrides(entry: &mut Section<'_>) -> Overrides {
    let mut overrides = Overrides::read(entry);
    if entry.is_check() {
        for Written { key, reading, text } in overrides.texts() {
            for piece in pieces_of(reading, text) {
                check(entry, key, reading, piece);
            }
        }
    }
    overrides
}

/// The operator's texts before, between and after the typed values.
fn pieces_of(reading: Reading, text: &str) -> Vec<&str> {
    if reading.may_be_typed() { pieces(text) } else { vec![text] }
}

/// Splits a text at its placeholders. A doubled brace is a brace, as in any template.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(brace) = text[at..].find(['{', '}']) {
        at += brace;
        let rest = &text[at..];
        if rest.starts_with(PLACE) {
            pieces.push(&text[start..at]);
            at += PLACE.len();
            start = at;
        } else if rest.starts_with("{{") || rest.starts_with("}}") {
            at += 2;
        } else {
            at += 1;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// True if a part of the text is typed.
fn is_typed(text: &str) -> bool {
    pieces(text).len() > 1
}

/// Expands the lab's fields in a piece of the operator's text. In texts for which KubeSpawner has no field except
/// `{value}`, only doubled braces are replaced.
fn fill(reading: Reading, piece: &str) -> Result<String, Error> {
    let mut text = piece.to_owned();
    match reading {
        Reading::Plain => text = text.replace("{{", "{").replace("}}", "}"),
        Reading::Template | Reading::Site => template::fill(&mut text)?,
        Reading::Hub => settings::fill(&mut text)?,
        Reading::Service => {}
    }
    Ok(text)
}

fn check(entry: &Section<'_>, key: &str, reading: Reading, piece: &str) {
    match reading {
        Reading::Plain if piece.replace("{{", "").replace("}}", "").contains(['{', '}']) => {
            entry.problem(
                key,
                format!("`{piece}` has a brace; here is only {{value}}, and {{{{ for a brace itself"),
            );
        }
        Reading::Plain => {}
        _ => entry.check_template(key, piece),
    }
}

/// Counts the texts with a placeholder, among values and names.
fn places(value: &Value) -> usize {
    match value {
        Value::String(text) => usize::from(is_typed(text)),
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Object(entries) => {
            entries.iter().map(|(name, value)| usize::from(is_typed(name)) + places(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Returns true if the text has only characters of image references, as the service checks them. The policy checks it
/// first, because it can still show an error to the user.
fn may_be_an_image(reference: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    reference.starts_with(|first: char| first.is_ascii_alphanumeric()) && reference.bytes().all(good)
}
