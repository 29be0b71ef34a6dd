//! A blueprint as a part of another.

use super::{BlueprintSpec, Trail};
use crate::names::ObjectName;

/// A blueprint on the way to a lab: the first trail by which it was reached.
pub(super) struct Link<'a> {
    pub(super) name: &'a ObjectName,
    pub(super) spec: &'a BlueprintSpec,
    pub(super) trail: Trail,
}
