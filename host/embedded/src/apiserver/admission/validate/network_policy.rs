//! Rules of network policies.

use super::json::{items, text};
use crate::apiserver::admission::names;
use crate::apiserver::failure::Cause;
use crate::apiserver::metadata::Document;
use serde_json::{Map, Value};
use std::net::IpAddr;

pub(super) fn of(object: &Document) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(spec) = object.get("spec") else { return causes };
    selector(spec.get("podSelector"), "spec.podSelector", &mut causes);
    for (i, kind) in items(spec.get("policyTypes")).enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        if !matches!(kind, "Ingress" | "Egress") {
            causes.push(Cause::unsupported(format!("spec.policyTypes[{i}]"), kind, &["Egress", "Ingress"]));
        }
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (i, rule) in items(spec.get(direction)).enumerate() {
            let path = format!("spec.{direction}[{i}]");
            for (i, port) in items(rule.get("ports")).enumerate() {
                check_port(port, &format!("{path}.ports[{i}]"), &mut causes);
            }
            for (i, peer) in items(rule.get(peers)).enumerate() {
                check_peer(peer, &format!("{path}.{peers}[{i}]"), &mut causes);
            }
        }
    }
    causes
}

fn check_port(port: &Value, path: &str, causes: &mut Vec<Cause>) {
    let known = ["SCTP", "TCP", "UDP"];
    let protocol = text(port, "protocol");
    if !protocol.is_empty() && !known.contains(&protocol) {
        causes.push(Cause::unsupported(format!("{path}.protocol"), protocol, &known));
    }
    match port.get("port") {
        Some(Value::Number(number)) if number.as_i64().is_none_or(|port| !(1..=65535).contains(&port)) => {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{path}.port"), &number.to_string(), why));
        }
        Some(Value::String(name)) => {
            if let Some(why) = names::port_error(name) {
                causes.push(Cause::invalid(format!("{path}.port"), name, &why));
            }
        }
        _ => {}
    }
}

fn check_peer(peer: &Value, path: &str, causes: &mut Vec<Cause>) {
    let said = |field: &str| peer.get(field).is_some();
    let selects = said("podSelector") || said("namespaceSelector");
    for field in ["podSelector", "namespaceSelector"] {
        selector(peer.get(field), &format!("{path}.{field}"), causes);
    }
    if !selects && !said("ipBlock") {
        causes.push(Cause::required(path, "must specify a peer"));
    } else if selects && said("ipBlock") {
        causes.push(Cause::forbidden(path, "may not specify both ipBlock and another peer"));
    }
    if let Some(block) = peer.get("ipBlock").map(|block| text(block, "cidr"))
        && !is_block(block)
    {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        causes.push(Cause::invalid(format!("{path}.ipBlock.cidr"), block, why));
    }
}

fn is_block(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let (address, bits) = (address.parse::<IpAddr>(), bits.parse::<u8>());
    matches!((address, bits), (Ok(IpAddr::V4(_)), Ok(..=32)) | (Ok(IpAddr::V6(_)), Ok(..=128)))
}

/// Rules of a label selector's `matchLabels`.
fn selector(selector: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    let labels = selector.and_then(|selector| selector.get("matchLabels")).and_then(Value::as_object);
    for (key, value) in labels.into_iter().flat_map(Map::iter) {
        let value = value.as_str().unwrap_or_default();
        for (given, why) in
            [(key.as_str(), names::qualified_error(key)), (value, names::label_value_error(value))]
        {
            if let Some(why) = why {
                causes.push(Cause::invalid(format!("{path}.matchLabels"), given, &why));
            }
        }
    }
}
