//! Deleting: what a client may say about it, and what becomes of the object itself.

use super::call::Query;
use super::failure::Failure;
use super::input;
use super::metadata::Document;
use super::resource::Resource;
use bytes::Bytes;
use serde_json::Value;

/// `DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub(super) struct DeleteOptions {
    /// Seconds that the object gets to end; none leaves it to the object.
    pub(super) grace: Option<i64>,
    pub(super) dry_run: bool,
    uid: String,
    resource_version: String,
}

impl DeleteOptions {
    /// Reads them from the body, or from the query.
    pub(super) fn parse(body: &Bytes, query: &Query) -> Result<Self, Failure> {
        let body = if body.is_empty() { Document::new() } else { input::parse_object(body)? };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let preconditions = body.get("preconditions");
        let policy = text(body.get("propagationPolicy"))
            .or_else(|| query.text("propagationPolicy").map(str::to_owned));
        // Dependents go after their owner.
        if let Some(other) = policy.filter(|policy| policy != "Background") {
            return Err(Failure::bad_request(format!(
                "propagationPolicy {other:?} is not supported by this API server; use \"Background\""
            )));
        }
        let grace = match body.get("gracePeriodSeconds").and_then(Value::as_i64) {
            Some(grace) => Some(grace),
            None => query.value("gracePeriodSeconds")?,
        };
        let in_body = body.get("dryRun").and_then(Value::as_array);
        Ok(Self {
            grace,
            dry_run: query.dry_run()? || in_body.is_some_and(|values| values.iter().any(|v| v == "All")),
            uid: text(preconditions.and_then(|p| p.get("uid"))).unwrap_or_default(),
            resource_version: text(preconditions.and_then(|p| p.get("resourceVersion"))).unwrap_or_default(),
        })
    }

    /// 409 when the object is not the one that the client means.
    pub(super) fn check(&self, resource: &Resource, object: &Document) -> Result<(), Failure> {
        resource.check_version(object, &self.uid, &self.resource_version)
    }

    /// Seconds until the object may be removed. Only pods that a node has begun to run get any: the node says when
    /// they are gone.
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
