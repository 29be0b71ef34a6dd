use std::sync::Arc;

use wasmspawner_core::names::Fields;
use wasmspawner_core::policy::{LabRequest, Subject};

use super::hook::Hook;

/// One call: the hook, and the lab and its child that it is about, if any.
pub(super) struct Call {
    pub(super) hook: Hook,
    pub(super) lab: Option<Arc<Fields>>,
    pub(super) subject: Subject,
}

impl From<Hook> for Call {
    fn from(hook: Hook) -> Self {
        Self { hook, lab: None, subject: Subject::default() }
    }
}

impl Call {
    pub(super) fn about(hook: Hook, request: &LabRequest) -> Self {
        Self { hook, lab: request.fields.clone(), subject: request.subject.clone() }
    }
}
