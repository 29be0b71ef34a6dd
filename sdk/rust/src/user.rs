use crate::bindings::types::{Error, FieldError, Group, Image, Pair, User};

impl User {
    /// A user of whom only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), uid: None, gid: None, groups: Vec::new(), email: None, display_name: None }
    }

    /// The user as a member of `group` too.
    #[must_use]
    pub fn in_group(mut self, group: &str) -> Self {
        self.groups.push(Group { name: group.into(), gid: None });
        self
    }

    /// Whether the user is in a group of this name.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one.name == group)
    }

    /// Whether the user is in one of these groups.
    pub fn is_in_any(&self, groups: &[String]) -> bool {
        groups.iter().any(|group| self.is_in(group))
    }
}

impl FieldError {
    /// What is wrong with `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl Error {
    /// One field of the request is wrong.
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError::new(field, message)])
    }
}

impl Pair {
    /// A pair of `name` and `value`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

impl Image {
    /// An image that is not pinned.
    pub fn new(reference: impl Into<String>) -> Self {
        Self { reference: reference.into(), digest: None, description: None }
    }
}
