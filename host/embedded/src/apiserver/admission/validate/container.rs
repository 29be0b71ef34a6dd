//! Rules of containers.

use super::json::{items, text};
use super::namespaced::quantities;
use super::probe;
use crate::apiserver::admission::{names, quantity};
use crate::apiserver::failure::Cause;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Rules of one container; `volumes` are the names of the pod's.
pub(super) fn check(container: &Value, path: &str, volumes: &HashSet<&str>, causes: &mut Vec<Cause>) {
    let name = text(container, "name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else if let Some(why) = names::label_error(name) {
        causes.push(Cause::invalid(format!("{path}.name"), name, &why));
    }
    let image = text(container, "image");
    if image.is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    } else if image.trim() != image {
        causes.push(Cause::invalid(
            format!("{path}.image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
    for (i, variable) in items(container.get("env")).enumerate() {
        check_variable(variable, &format!("{path}.env[{i}]"), causes);
    }
    let (mut paths, mounts) = (HashSet::new(), format!("{path}.volumeMounts"));
    for (i, mount) in items(container.get("volumeMounts")).enumerate() {
        let path = format!("{path}.volumeMounts[{i}]");
        let (volume, at) = (text(mount, "name"), text(mount, "mountPath"));
        if !volumes.contains(volume) {
            causes.push(Cause::not_found(format!("{path}.name"), volume));
        }
        if at.is_empty() {
            causes.push(Cause::required(format!("{path}.mountPath"), ""));
        } else if !paths.insert(at) {
            causes.push(Cause::invalid(format!("{path}.mountPath"), at, "must be unique"));
        }
        let below = text(mount, "subPath");
        if below.starts_with('/') || below.split('/').any(|part| part == "..") {
            // Kubernetes does not say which mount.
            let why = "must be a relative path, and must not contain '..'";
            causes.push(Cause::invalid(format!("{mounts}.subPath"), below, why));
        }
    }
    let mut ports = HashSet::new();
    for (i, port) in items(container.get("ports")).enumerate() {
        check_port(port, &format!("{path}.ports[{i}]"), &mut ports, causes);
    }
    for (field, known) in [
        ("imagePullPolicy", &["Always", "IfNotPresent", "Never"][..]),
        ("terminationMessagePolicy", &["FallbackToLogsOnError", "File"]),
    ] {
        one_of(container, field, known, path, causes);
    }
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get(kind) {
            probe::check(probe, &format!("{path}.{kind}"), kind != "readinessProbe", causes);
        }
    }
    check_security(container, path, causes);
    check_resources(container, path, causes);
}

fn check_port<'a>(port: &'a Value, path: &str, seen: &mut HashSet<&'a str>, causes: &mut Vec<Cause>) {
    for field in ["containerPort", "hostPort"] {
        let number = port.get(field).and_then(Value::as_i64).unwrap_or(0);
        if number == 0 && field == "containerPort" {
            causes.push(Cause::required(format!("{path}.{field}"), ""));
        } else if number != 0 && !(1..=65535).contains(&number) {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{path}.{field}"), &number.to_string(), why));
        }
    }
    let name = text(port, "name");
    if let Some(why) = names::port_error(name).filter(|_| !name.is_empty()) {
        causes.push(Cause::invalid(format!("{path}.name"), name, &why));
    } else if !name.is_empty() && !seen.insert(name) {
        causes.push(Cause::duplicate(format!("{path}.name"), name));
    }
    one_of(port, "protocol", &["SCTP", "TCP", "UDP"], path, causes);
}

/// A value of a closed list, where there is one.
fn one_of(object: &Value, field: &str, known: &[&str], path: &str, causes: &mut Vec<Cause>) {
    if let Some(value) = object.get(field).and_then(Value::as_str)
        && !known.contains(&value)
    {
        causes.push(Cause::unsupported(format!("{path}.{field}"), value, known));
    }
}

fn check_security(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(security) = container.get("securityContext") else { return };
    for field in ["runAsUser", "runAsGroup"] {
        if let Some(id @ ..0) = security.get(field).and_then(Value::as_i64) {
            let path = format!("{path}.securityContext.{field}");
            causes.push(Cause::invalid(path, &id.to_string(), "must be between 0 and 2147483647, inclusive"));
        }
    }
    let says = |field: &str| security.get(field).and_then(Value::as_bool);
    if says("allowPrivilegeEscalation") == Some(false) && says("privileged") == Some(true) {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        causes.push(Cause::invalid(format!("{path}.securityContext"), "", why));
    }
}

fn check_variable(variable: &Value, path: &str, causes: &mut Vec<Cause>) {
    let name = text(variable, "name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else if let Some(why) = names::env_error(name) {
        causes.push(Cause::invalid(format!("{path}.name"), name, &why));
    }
    let Some(from) = variable.get("valueFrom") else { return };
    let path = format!("{path}.valueFrom");
    let sources = from.as_object().map_or(0, Map::len);
    if sources == 0 {
        causes.push(Cause::invalid(
            path,
            "",
            "must specify one of `fieldRef`, `configMapKeyRef` or `secretKeyRef`",
        ));
    } else if !text(variable, "value").is_empty() {
        causes.push(Cause::invalid(path, "", "may not be specified when `value` is not empty"));
    } else if sources > 1 {
        causes.push(Cause::invalid(path, "", "may not have more than one field specified at a time"));
    } else if let Some(field) = from.get("fieldRef").map(|field| text(field, "fieldPath"))
        && !is_told_to_containers(field)
    {
        causes.push(Cause::invalid(
            format!("{path}.fieldRef.fieldPath"),
            field,
            "error converting fieldPath",
        ));
    }
}

/// The fields of a pod that a variable may be taken from.
fn is_told_to_containers(field: &str) -> bool {
    matches!(
        field,
        "metadata.name"
            | "metadata.namespace"
            | "metadata.uid"
            | "spec.nodeName"
            | "spec.serviceAccountName"
            | "status.hostIP"
            | "status.hostIPs"
            | "status.podIP"
            | "status.podIPs"
    ) || ["metadata.labels['", "metadata.annotations['"].iter().any(|start| field.starts_with(start))
}

fn check_resources(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(resources) = container.get("resources") else { return };
    let (requests, limits) = (resources.get("requests"), resources.get("limits"));
    causes.extend(quantities(limits, &format!("{path}.resources.limits")));
    causes.extend(quantities(requests, &format!("{path}.resources.requests")));
    for (kind, amounts) in [("limits", limits), ("requests", requests)] {
        for (name, amount) in amounts.and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            let known = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
            if !known && !name.contains('/') && !name.starts_with("hugepages-") {
                let why = "must be a standard resource type or fully qualified";
                causes.push(Cause::invalid(
                    format!("{path}.resources.{kind}[{name}]"),
                    amount.as_str().unwrap_or_default(),
                    why,
                ));
            }
        }
    }
    for (name, request) in requests.and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        let read = |value: &Value| value.as_str().and_then(quantity::milli);
        let limit = limits.and_then(|l| l.get(name));
        if let (Some(requested), Some(limited)) = (read(request), limit.and_then(read))
            && requested > limited
        {
            let why = format!(
                "must be less than or equal to {name} limit of {}",
                limit.and_then(Value::as_str).unwrap_or_default()
            );
            let given = request.as_str().unwrap_or_default();
            causes.push(Cause::invalid(format!("{path}.resources.requests"), given, &why));
        }
    }
}
