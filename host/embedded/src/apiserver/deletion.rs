//! Deletion: the client's options, and the grace period of the object itself.

use super::call::Query;
use super::failure::Failure;
use super::input;
use super::metadata::Document;
use super::resource::Resource;
use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, Preconditions};
use serde_json::Value;

/// The client's options of a deletion.
#[derive(Clone, Debug, Default)]
pub(super) struct DeleteOptions {
    /// The grace period in seconds; `None` for that of the object.
    pub(super) grace: Option<i64>,
    pub(super) dry_run: bool,
    preconditions: Preconditions,
}

impl DeleteOptions {
    /// Reads the options from the body, or from the query.
    pub(super) fn parse(body: &Bytes, query: &Query) -> Result<Self, Failure> {
        let body = if body.is_empty() { Value::Object(Document::new()) } else { input::parse(body)? };
        let body: meta::DeleteOptions = serde_json::from_value(body)
            .map_err(|error| Failure::bad_request(format!("cannot read the DeleteOptions: {error}")))?;
        let policy = body.propagation_policy.as_deref().or_else(|| query.text("propagationPolicy"));
        // Dependents are deleted after their owner.
        if let Some(other) = policy.filter(|policy| *policy != "Background") {
            return Err(Failure::bad_request(format!(
                "propagationPolicy {other:?} is not supported by this API server; use \"Background\""
            )));
        }
        let grace = match body.grace_period_seconds {
            Some(grace) => Some(grace),
            None => query.value("gracePeriodSeconds")?,
        };
        let dry_run = query.dry_run()? || body.dry_run.iter().flatten().any(|value| value == "All");
        Ok(Self { grace, dry_run, preconditions: body.preconditions.unwrap_or_default() })
    }

    /// Fails with 409 if the object is not the one that the client means.
    pub(super) fn check(&self, resource: &Resource, object: &Document) -> Result<(), Failure> {
        let Preconditions { uid, resource_version } = &self.preconditions;
        let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
        resource.check_version(object, &text(uid), &text(resource_version))
    }

    /// Returns the seconds until the object may be removed. Only pods that are bound to a node and have not ended get
    /// more than 0: the node reports when they are gone.
    pub(super) fn grace_for(&self, resource: &Resource, object: &Document) -> i64 {
        if !resource.is_core("pods") {
            return 0;
        }
        let spec = |field: &str| object.get("spec").and_then(|spec| spec.get(field));
        let phase = object.get("status").and_then(|s| s.get("phase")).and_then(Value::as_str);
        let scheduled = spec("nodeName").and_then(Value::as_str).is_some_and(|node| !node.is_empty());
        if !scheduled || matches!(phase, Some("Succeeded" | "Failed")) {
            return 0;
        }
        let own = || spec("terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
        match self.grace.unwrap_or_else(own) {
            negative @ ..0 => negative.signum().abs(),
            grace => grace,
        }
    }
}
