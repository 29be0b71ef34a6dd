//! The trail by which one blueprint is reached from another.

use std::fmt;

use crate::names::ObjectName;

/// Blueprints, each of which extends the next: `gpu -> base`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail(Vec<ObjectName>);

impl Trail {
    pub(super) fn new(steps: &[ObjectName]) -> Self {
        Self(steps.to_vec())
    }

    pub(super) fn then(&self, next: &ObjectName) -> Self {
        Self(self.0.iter().chain([next]).cloned().collect())
    }

    pub(super) fn contains(&self, name: &ObjectName) -> bool {
        self.0.contains(name)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            write!(f, "{}{name}", if at == 0 { "" } else { " -> " })?;
        }
        Ok(())
    }
}
