use crate::bindings::types::{Error, FieldError, Group, Image, Pair, User};

impl User {
    /// A user with a name and nothing else.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            uid: None,
            gid: None,
            groups: Vec::new(),
            email: None,
            display_name: None,
            quota: None,
        }
    }

    /// Adds the user to `group`.
    #[must_use]
    pub fn in_group(mut self, group: &str) -> Self {
        self.groups.push(Group { name: group.into(), gid: None });
        self
    }

    /// True if the user is in the group of this name.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one.name == group)
    }

    /// True if the user is in one of these groups.
    pub fn is_in_any(&self, groups: &[String]) -> bool {
        groups.iter().any(|group| self.is_in(group))
    }
}

impl FieldError {
    /// An error in `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl Error {
    /// An error in one field of the request.
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
    /// An image without a digest.
    pub fn new(reference: impl Into<String>) -> Self {
        Self { reference: reference.into(), digest: None, description: None }
    }
}
