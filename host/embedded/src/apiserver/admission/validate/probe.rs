//! Rules of probes.

use crate::apiserver::failure::Cause;
use serde_json::Value;

/// Rules of one probe. Only readiness can take more than one success.
pub(super) fn check(probe: &Value, path: &str, one_success: bool, causes: &mut Vec<Cause>) {
    let handlers: Vec<&str> = ["exec", "httpGet", "tcpSocket", "grpc"]
        .into_iter()
        .filter(|handler| probe.get(handler).is_some())
        .collect();
    if handlers.is_empty() {
        causes.push(Cause::required(path, "must specify a handler type"));
    }
    for second in handlers.iter().skip(1) {
        causes.push(Cause::forbidden(format!("{path}.{second}"), "may not specify more than 1 handler type"));
    }
    // Of several, only the first is looked into.
    if let Some(handler @ ("httpGet" | "tcpSocket")) = handlers.first().copied()
        && let Some(port) = probe.get(handler).and_then(|handler| handler.get("port")).and_then(Value::as_i64)
        && !(1..=65535).contains(&port)
    {
        let why = "must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(format!("{path}.{handler}.port"), &port.to_string(), why));
    }
    let number = |field: &str| probe.get(field).and_then(Value::as_i64);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        if let Some(given @ ..0) = number(field) {
            let why = "must be greater than or equal to 0";
            causes.push(Cause::invalid(format!("{path}.{field}"), &given.to_string(), why));
        }
    }
    if one_success && let Some(given @ 2..) = number("successThreshold") {
        causes.push(Cause::invalid(format!("{path}.successThreshold"), &given.to_string(), "must be 1"));
    }
}
