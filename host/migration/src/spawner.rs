//! Settings of the spawner in the Hub's own configuration: `hub.config`, and Python.

use serde_json::Value;

use crate::becomes::Becomes::{Converted, NotNeeded, Open, Profiles, Service, Setting, Stays};
use crate::becomes::plain_text;
use crate::draft::Draft;
use crate::values_file::below;
use crate::{profiles, python, settings};

/// Converts all settings of a class, such as `hub.config.KubeSpawner`.
pub(crate) fn all(draft: &mut Draft<'_>, path: &str, value: &Value) {
    for (name, value) in settings::volumes_first(value) {
        one(draft, &below(path, name), name, value);
    }
}

fn one(draft: &mut Draft<'_>, path: &str, name: &str, value: &Value) {
    match settings::of(name) {
        Some(Setting(setting)) => settings::put(draft, path, setting, value),
        Some(Profiles) => profiles::list(draft, path, value),
        Some(Service(to)) => {
            draft.set_service(to, value.clone());
            draft.carried(path, to);
        }
        Some(Converted(convert)) => convert(draft, path, value),
        Some(NotNeeded(why) | Stays(why)) => draft.not_needed(path, why),
        Some(Open(did, ways)) => draft.open(path, did, ways),
        None => draft.open(
            path,
            "is a setting of the spawner that this program does not know",
            "Look up in the documentation of its class what it did",
        ),
    }
}

/// Reports snippets of Python in the Hub's configuration.
pub(crate) fn snippets(draft: &mut Draft<'_>, path: &str, value: &Value) {
    for (name, text) in value.as_object().into_iter().flatten() {
        snippet(draft, &below(path, name), &plain_text(text));
    }
    if value.is_string() {
        snippet(draft, path, &plain_text(value));
    }
}

/// Converts a whole configuration of JupyterHub.
pub(crate) fn python(draft: &mut Draft<'_>, name: &str, text: &str) {
    snippet(draft, name, text);
}

/// Converts the literals in a snippet, and reports the rest.
fn snippet(draft: &mut Draft<'_>, path: &str, text: &str) {
    let config = python::read(text);
    for (class, name, value) in &config.literals {
        one(draft, &format!("{path}: c.{class}.{name}"), name, value);
    }
    let text = config.rest;
    let found = mentioned(&text);
    if text.trim().is_empty() && config.literals.is_empty() {
        draft.not_needed(path, "has no value");
    } else if text.trim().is_empty() {
        draft.not_needed(path, "sets what is listed, and nothing else");
    } else if found.is_empty() {
        draft.stays(path, "is Python for the Hub that names no setting of the spawner; read it once");
    } else {
        draft.open(
            path,
            &format!("is Python that sets or reads {} of the spawner", found.join(", ")),
            "What it did about labs goes to `kubespawner` of the policy, or to a policy of your own; remove that part from the \
             Hub's values: `c.KubeSpawner` has no effect there any more, and `c.Spawner` goes on having one",
        );
    }
}

/// The parts of the spawner that a text of Python names.
fn mentioned(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for class in ["KubeSpawner", "Spawner", "spawner"] {
        for (at, _) in text.match_indices(class) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|char| char.is_alphanumeric() || char == '_') {
                continue;
            }
            let after = &text[at + class.len()..];
            let name: String = after
                .strip_prefix('.')
                .unwrap_or_default()
                .chars()
                .take_while(|char| char.is_ascii_alphanumeric() || *char == '_')
                .collect();
            let name = if name.is_empty() { format!("`{class}`") } else { format!("`{name}`") };
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

/// Reports files of the Hub's container.
pub(crate) fn hub_files(draft: &mut Draft<'_>, path: &str, value: &Value) {
    for (name, file) in value.as_object().into_iter().flatten() {
        let path = below(path, name);
        let text = file.get("stringData").map(plain_text).unwrap_or_default();
        if mentioned(&text).is_empty() {
            draft.stays(&path, "is a file of the Hub's container");
        } else {
            snippet(draft, &path, &text);
        }
    }
}
