//! `lab.service`: a Service for each lab.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::RouteFields;
use crate::field_error::FieldError;

/// A Service in front of each lab, so that the lab has a name in DNS that stays the same. It is headless: the name means the
/// address of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LabService {
    /// The URL at which the Hub reaches a lab, without the path, such as `http://{name}.{namespace}.svc:{port}`. It may contain
    /// `{name}`, the name of the Service; `{namespace}`; `{prefix}`, the path of the lab's URL; and `{port}`. Default: the
    /// address of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab_url: Option<String>,
}

impl LabService {
    pub(super) fn check(&self) -> Option<FieldError> {
        let problem = RouteFields::problem(self.lab_url.as_deref()?)?;
        Some(FieldError::new("lab.service.lab_url", problem))
    }
}
