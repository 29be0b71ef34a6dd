//! `default_url` and `notebook_dir`, which JupyterHub passes to a lab as environment variables.

use wasmspawner_sdk::{Error, Section};

use super::change::Change;
use crate::template;

/// The settings of one override.
#[derive(Clone, Default)]
pub(super) struct Settings {
    default_url: Change<String>,
    notebook_dir: Change<String>,
}

impl Settings {
    /// Reads the settings. An empty text counts as absent.
    pub(super) fn read(entry: &mut Section<'_>) -> Self {
        Self {
            default_url: Change::read(entry, "default_url").unless(&String::new()),
            notebook_dir: Change::read(entry, "notebook_dir").unless(&String::new()),
        }
    }

    /// The texts, each with its key.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = (&'static str, &mut String)> {
        let changes = [("default_url", &mut self.default_url), ("notebook_dir", &mut self.notebook_dir)];
        changes.into_iter().filter_map(|(key, change)| Some((key, change.value_mut()?)))
    }

    /// The changes, each with its variable.
    pub(super) fn by_variable(&self) -> [(&'static str, &Change<String>); 2] {
        [("JUPYTERHUB_DEFAULT_URL", &self.default_url), ("JUPYTERHUB_ROOT_DIR", &self.notebook_dir)]
    }
}

/// Expands the lab's fields. JupyterHub expands these texts itself, and its `{username}` is the name, not a slug of it.
pub(super) fn fill(text: &mut String) -> Result<(), Error> {
    *text = of_names(text);
    template::fill(text)
}

/// Replaces `username` by the field for the name itself.
fn of_names(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, braces) = rest.split_at(at);
        out.push_str(before);
        let is_field = |after: &str| after.starts_with(['}', '!', ':']);
        if let Some(doubled) = ["{{", "}}"].into_iter().find(|doubled| braces.starts_with(doubled)) {
            out.push_str(doubled);
            rest = &braces[doubled.len()..];
        } else if let Some(after) = braces.strip_prefix("{username").filter(|after| is_field(after)) {
            out.push_str("{unescaped_username");
            rest = after;
        } else {
            out.push_str(&braces[..1]);
            rest = &braces[1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::of_names;

    #[test]
    fn the_username_is_the_name_itself() {
        for (text, expected) in [
            ("/home/{username}", "/home/{unescaped_username}"),
            ("{username:.8}-{username!r}", "{unescaped_username:.8}-{unescaped_username!r}"),
            ("{{username}} {usernames} {servername}", "{{username}} {usernames} {servername}"),
            ("{{{username}}}", "{{{unescaped_username}}}"),
            ("/lab", "/lab"),
        ] {
            assert_eq!(of_names(text), expected);
        }
    }
}
