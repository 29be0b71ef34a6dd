use std::fmt;

use serde::Serialize;

/// The name of a function of a policy that the service calls: the interface and the function in `wit/`, such as
/// `form.render`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Hook(&'static str);

impl Hook {
    /// Creates the name of a hook.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Returns the interface and function in `wit/`.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
