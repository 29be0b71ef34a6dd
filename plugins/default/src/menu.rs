use wasmspawner_sdk::form::Choice;
use wasmspawner_sdk::{Error, Options, Section, User};

/// One of several choices.
pub(crate) struct Entry<T> {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) description: Option<String>,
    /// The groups whose members see the choice; if empty, every user does.
    groups: Vec<String>,
    pub(crate) value: T,
}

impl<T> Entry<T> {
    fn open_to(&self, user: &User) -> bool {
        self.groups.is_empty() || user.is_in_any(&self.groups)
    }
}

/// The choices, and the default among them.
pub(crate) struct Menu<T> {
    key: &'static str,
    entries: Vec<Entry<T>>,
    default: Option<String>,
}

/// A function that reads an entry of a menu: its value, and a description for an entry whose configuration has none.
type ReadEntry<T> = fn(&mut Section<'_>) -> (T, Option<String>);

impl<T> Menu<T> {
    pub(crate) fn read(
        config: &mut Section<'_>,
        key: &'static str,
        default_key: &'static str,
        read: ReadEntry<T>,
    ) -> Self {
        let mut names: Vec<String> = Vec::new();
        let entries = config.list(key, |entry| {
            let name: String = entry.required("name");
            if names.contains(&name) {
                entry.problem("name", format!("there is a `{name}` before; names must differ"));
            }
            names.push(name.clone());
            let label = entry.optional("label").unwrap_or_else(|| name.clone());
            let described = entry.optional("description");
            let groups = entry.or_default("groups");
            let (value, of_itself) = read(entry);
            Entry { name, label, description: described.or(of_itself), groups, value }
        });
        let default: Option<String> = config.optional(default_key);
        if let Some(default) = default.as_ref().filter(|default| !names.contains(default)) {
            config.problem(default_key, format!("there is no `{default}`; there are {}", names.join(", ")));
        }
        Self { key, entries, default }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn choices(&self, user: &User) -> Result<Vec<Choice>, Error> {
        let choice = |entry: &Entry<T>| Choice {
            value: entry.name.clone(),
            label: entry.label.clone(),
            description: entry.description.clone(),
        };
        let choices: Vec<_> = self.entries.iter().filter(|entry| entry.open_to(user)).map(choice).collect();
        if choices.is_empty() { Err(self.nothing_open()) } else { Ok(choices) }
    }

    pub(crate) fn entries(&self) -> &[Entry<T>] {
        &self.entries
    }

    /// The entries that this user may choose.
    pub(crate) fn open_entries(&self, user: &User) -> impl Iterator<Item = &Entry<T>> {
        self.entries.iter().filter(|entry| entry.open_to(user))
    }

    /// True if the configuration names the initial choice.
    pub(crate) fn has_default(&self) -> bool {
        self.default.is_some()
    }

    /// The initial choice: the configured default if this user may choose it, or else the first that they may choose.
    pub(crate) fn default(&self, user: &User) -> Option<&Entry<T>> {
        let mut open = self.entries.iter().filter(|entry| entry.open_to(user)).peekable();
        let first = open.peek().copied();
        open.find(|entry| Some(&entry.name) == self.default.as_ref()).or(first)
    }

    /// The choice according to the options; `None` if the site has no such menu.
    pub(crate) fn chosen(
        &self,
        user: &User,
        option: &str,
        options: &Options,
    ) -> Result<Option<&Entry<T>>, Error> {
        if self.is_empty() {
            return Ok(None);
        }
        let Some(name) = options.text(option) else {
            return self.default(user).map(Some).ok_or_else(|| self.nothing_open());
        };
        let entry = self.entries.iter().find(|entry| entry.name == name);
        match entry.filter(|entry| entry.open_to(user)) {
            Some(entry) => Ok(Some(entry)),
            None => Err(Error::invalid(option, format!("`{name}` is not offered to you"))),
        }
    }

    fn nothing_open(&self) -> Error {
        Error::denied(format!("None of the {} here are open to your groups.", self.key))
    }
}
