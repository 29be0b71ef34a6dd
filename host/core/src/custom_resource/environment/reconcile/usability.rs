//! Tells whether labs can run in a target.

use super::World;
use crate::custom_resource::environment::{Target, TargetCheck, TargetDefect};

/// The usability of a target for labs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usability<'a> {
    /// Labs can run there.
    Usable,
    /// The target, or its present credentials, have not been checked yet.
    Unchecked,
    /// No lab can run there.
    Defective(&'a TargetDefect),
}

impl World {
    /// Returns the usability of a target. A target of the built-in provisioner is usable as soon as its objects are
    /// made.
    pub fn usability(&self, target: &Target) -> Usability<'_> {
        let Some(credentials) = target.spec.kubernetes_credentials.as_ref().filter(|_| !target.is_ours())
        else {
            return Usability::Usable;
        };
        match self.checks.get(target.uid()).filter(|check| check.credentials == *credentials) {
            None => Usability::Unchecked,
            Some(TargetCheck { defect: None, .. }) => Usability::Usable,
            Some(TargetCheck { defect: Some(defect), .. }) => Usability::Defective(defect),
        }
    }
}
