use wasmspawner_sdk::Section;

/// The names in a list of the configuration, which must all differ.
#[derive(Default)]
pub(super) struct Distinct {
    names: Vec<String>,
}

impl Distinct {
    /// Adds the value of `key`. A name that the list has already is an error.
    pub(super) fn add(&mut self, entry: &Section<'_>, key: &str, name: &str) {
        if self.names.iter().any(|other| other == name) {
            entry.problem(key, format!("there is a `{name}` before; each must be different"));
        }
        self.names.push(name.to_owned());
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}
