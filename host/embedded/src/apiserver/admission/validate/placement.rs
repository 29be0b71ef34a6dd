//! Rules of where a pod runs, under which names, and for how long.

use super::json::{items, text};
use crate::apiserver::admission::names;
use crate::apiserver::failure::Cause;
use crate::apiserver::metadata::Document;
use serde_json::{Map, Value};
use std::net::IpAddr;

pub(super) fn check(spec: &Document, causes: &mut Vec<Cause>) {
    type Rule = fn(&str) -> Option<String>;
    let named: [(&str, Rule); 3] = [
        ("hostname", names::label_error),
        ("subdomain", names::label_error),
        ("nodeName", names::subdomain_error),
    ];
    for (field, rule) in named {
        let given = spec.get(field).and_then(Value::as_str).unwrap_or_default();
        if let Some(why) = rule(given).filter(|_| !given.is_empty()) {
            causes.push(Cause::invalid(format!("spec.{field}"), given, &why));
        }
    }
    if let Some(policy) = spec.get("dnsPolicy").and_then(Value::as_str) {
        let known = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
        if !known.contains(&policy) {
            causes.push(Cause::unsupported("spec.dnsPolicy", policy, &known));
        }
    }
    if let Some(limit @ ..1) = spec.get("activeDeadlineSeconds").and_then(Value::as_i64) {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid("spec.activeDeadlineSeconds", &limit.to_string(), why));
    }
    let selector = spec.get("nodeSelector").and_then(Value::as_object);
    for (key, value) in selector.into_iter().flat_map(Map::iter) {
        let value = value.as_str().unwrap_or_default();
        for (given, why) in
            [(key.as_str(), names::qualified_error(key)), (value, names::label_value_error(value))]
        {
            if let Some(why) = why {
                causes.push(Cause::invalid("spec.nodeSelector", given, &why));
            }
        }
    }
    for (i, toleration) in items(spec.get("tolerations")).enumerate() {
        check_toleration(toleration, &format!("spec.tolerations[{i}]"), causes);
    }
    for field in ["runAsUser", "runAsGroup", "fsGroup"] {
        let id = spec.get("securityContext").and_then(|security| security.get(field)).and_then(Value::as_i64);
        if let Some(id @ ..0) = id {
            let why = "must be between 0 and 2147483647, inclusive";
            causes.push(Cause::invalid(format!("spec.securityContext.{field}"), &id.to_string(), why));
        }
    }
    for (i, alias) in items(spec.get("hostAliases")).enumerate() {
        let address = text(alias, "ip");
        if address.parse::<IpAddr>().is_err() {
            let why = "must be a valid IP address";
            causes.push(Cause::invalid(format!("spec.hostAliases[{i}].ip"), address, why));
        }
    }
}

fn check_toleration(toleration: &Value, path: &str, causes: &mut Vec<Cause>) {
    let (key, operator, effect) =
        (text(toleration, "key"), text(toleration, "operator"), text(toleration, "effect"));
    if let Some(why) = names::qualified_error(key).filter(|_| !key.is_empty()) {
        causes.push(Cause::invalid(format!("{path}.key"), key, &why));
    }
    if !matches!(operator, "" | "Equal" | "Exists") {
        causes.push(Cause::unsupported(format!("{path}.operator"), operator, &["Equal", "Exists"]));
    } else if key.is_empty() && operator != "Exists" {
        let why =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        causes.push(Cause::invalid(format!("{path}.operator"), operator, why));
    } else if operator == "Exists" && !text(toleration, "value").is_empty() {
        let why = "value must be empty when `operator` is 'Exists'";
        causes.push(Cause::invalid(format!("{path}.operator"), operator, why));
    }
    let known = ["NoExecute", "NoSchedule", "PreferNoSchedule"];
    if !effect.is_empty() && !known.contains(&effect) {
        causes.push(Cause::unsupported(format!("{path}.effect"), effect, &known));
    }
    if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.push(Cause::invalid(format!("{path}.effect"), effect, why));
    }
}
