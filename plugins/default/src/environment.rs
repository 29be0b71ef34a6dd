//! The environment class of a lab: that of its size, of a group, or of the site.

use wasmspawner_sdk::{Section, User};

/// The environment classes of the site.
pub(crate) struct Environments {
    everybody: Option<String>,
    /// Classes for members of groups, the most important first.
    of_groups: Vec<(Vec<String>, String)>,
}

impl Environments {
    pub(crate) fn read(config: &mut Section<'_>) -> Self {
        let of_groups = config.list("environment_classes", |entry| {
            for key in ["groups", "class"] {
                if !entry.has(key) {
                    entry.problem(key, "is missing");
                }
            }
            (entry.or_default("groups"), entry.or_default("class"))
        });
        Self { everybody: config.optional("environment_class"), of_groups }
    }

    /// The class for a lab of this user. `size` is the class of the lab's size, if it has one.
    pub(crate) fn class(&self, user: &User, size: Option<&String>) -> Option<String> {
        let of_group = self.of_groups.iter().find(|(groups, _)| user.is_in_any(groups));
        size.or(of_group.map(|(_, class)| class)).or(self.everybody.as_ref()).cloned()
    }
}
