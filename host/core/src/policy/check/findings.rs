use std::collections::BTreeSet;
use std::fmt::Display;

use crate::policy::FieldError;

/// The errors that a check found, each with the path of its field.
#[derive(Default)]
pub(super) struct Findings {
    prefix: String,
    errors: Vec<FieldError>,
}

impl Findings {
    /// Runs a check whose errors are below `field`.
    pub(super) fn at(&mut self, field: &str, check: impl FnOnce(&mut Self)) {
        let outer = self.prefix.len();
        if outer > 0 && !field.starts_with('[') {
            self.prefix.push('.');
        }
        self.prefix.push_str(field);
        check(self);
        self.prefix.truncate(outer);
    }

    /// Checks every item of the list at `field`, and that no two items have the same `name`.
    pub(super) fn each<T, K: Ord>(
        &mut self,
        field: &str,
        items: &[T],
        (key, name): (&str, impl Fn(&T) -> K),
        mut check: impl FnMut(&T, &mut Self),
    ) {
        let mut names = BTreeSet::new();
        for (position, item) in items.iter().enumerate() {
            self.at(&format!("{field}[{position}]"), |found| {
                if !names.insert(name(item)) {
                    found.add(key, "is given twice");
                }
                check(item, found);
            });
        }
    }

    /// Adds an error about `field`; `""` means the value that is being checked.
    pub(super) fn add(&mut self, field: &str, problem: impl Display) {
        let path = match (self.prefix.as_str(), field) {
            (prefix, "") => prefix.to_owned(),
            ("", field) => field.to_owned(),
            (prefix, field) => format!("{prefix}.{field}"),
        };
        self.errors.push(FieldError::new(path, problem.to_string()));
    }

    /// Adds an error about `field` if `wrong`.
    pub(super) fn refuse_if(&mut self, wrong: bool, field: &str, problem: &str) {
        if wrong {
            self.add(field, problem);
        }
    }

    /// Adds an error about `field` if it could not be parsed.
    pub(super) fn parsed<T, E: Display>(&mut self, field: &str, result: Result<T, E>) {
        if let Err(error) = result {
            self.add(field, error);
        }
    }

    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.errors
    }
}
