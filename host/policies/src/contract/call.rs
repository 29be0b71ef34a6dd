use std::sync::Arc;

use wasmspawner_core::names::Fields;
use wasmspawner_core::policy::{LabRequest, Subject};

use crate::names::hook::Hook;

/// A call: its hook, and the lab and child that it is about, if any.
pub(crate) struct Call {
    pub(crate) hook: Hook,
    pub(crate) lab: Option<Arc<Fields>>,
    pub(crate) subject: Subject,
}

impl From<Hook> for Call {
    fn from(hook: Hook) -> Self {
        Self { hook, lab: None, subject: Subject::default() }
    }
}

impl Call {
    pub(crate) fn about(hook: Hook, request: &LabRequest) -> Self {
        Self { hook, lab: request.fields.clone(), subject: request.subject.clone() }
    }
}
