//! `singleuser.networkPolicy`.

use serde_json::{Value, json};

use crate::draft::{Draft, is_nothing};
use crate::values_file::below;

/// Why nothing blocks the cloud's metadata by iptables.
const NO_METADATA: &str = "no privileged container blocks the metadata of the cloud's machines here: \
    `lab.network_policy` does, which a network plugin has to enforce";

const PRIVATE: [&str; 3] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];
const METADATA: &str = "169.254.169.254/32";
const RULES: [&str; 6] = [
    "cloudMetadataServer",
    "dnsPortsCloudMetadataServer",
    "dnsPortsKubeSystemNamespace",
    "dnsPortsPrivateIPs",
    "nonPrivateIPs",
    "privateIPs",
];
const EGRESS: &str = "lab.network_policy.egress";

/// Reads whether a privileged container blocked the metadata of the cloud's machines.
pub(crate) fn metadata(draft: &mut Draft<'_>, path: &str, value: &Value) {
    draft.blocks_metadata = value.get("blockWithIptables") != Some(&Value::Bool(false));
    for key in value.as_object().into_iter().flatten().map(|(key, _)| below(path, key)) {
        if draft.is_given(&key) {
            draft.not_needed(&key, NO_METADATA);
        }
    }
}

/// Converts the network policy. What labs may connect to is written out, because the chart's default is stricter than that
/// of this service: it allows no private addresses.
pub(crate) fn policy(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let enabled = value.get("enabled") != Some(&Value::Bool(false));
    if draft.is_given(&below(path, "enabled")) {
        draft.carried(&below(path, "enabled"), "lab.network_policy.enabled");
    }
    let of_hub = ["hub", "proxy"].map(|component| peer_of_hub(draft, component));
    if !draft.hub.has_usual_app() {
        draft.set_service("lab.network_policy.ingress", of_hub.to_vec().into());
    }
    if !enabled && draft.blocks_metadata {
        draft.open(
            &below(path, "enabled"),
            "was off, and a container with iptables kept labs from the metadata of the cloud's machines, which have credentials",
            "The network policy of labs is on here, and blocks them; other pods that connect to labs are named in \
             `lab.network_policy.ingress`. Set `enabled: false` if the machines have no such metadata",
        );
        return others(draft, path, value);
    }
    if !enabled {
        draft.set_service("lab.network_policy.enabled", false.into());
    }
    let mut egress = vec![
        to_hub(draft, "hub", 8081),
        to_hub(draft, "proxy", 8000),
        to_hub(draft, "autohttps", 8080),
        to_hub(draft, "autohttps", 8443),
    ];
    let allow = value.get("egressAllowRules");
    for (rule, to, ports) in [
        ("dnsPortsPrivateIPs", addresses(&PRIVATE, &[]), dns()),
        ("dnsPortsKubeSystemNamespace", kube_system(), dns()),
        ("dnsPortsCloudMetadataServer", addresses(&[METADATA], &[]), dns()),
        (
            "nonPrivateIPs",
            addresses(&["0.0.0.0/0"], &[PRIVATE[0], PRIVATE[1], PRIVATE[2], METADATA]),
            json!([]),
        ),
        ("privateIPs", addresses(&PRIVATE, &[]), json!([])),
        ("cloudMetadataServer", addresses(&[METADATA], &[]), json!([])),
    ] {
        let path = below(&below(path, "egressAllowRules"), rule);
        // The container with iptables blocked it all the same.
        let blocked = rule == "cloudMetadataServer" && draft.blocks_metadata;
        if !blocked && allow.and_then(|allow| allow.get(rule)) == Some(&Value::Bool(true)) {
            egress.push(json!({"to": to, "ports": ports}));
        }
        if draft.is_given(&path) {
            draft.carried(&path, EGRESS);
        }
    }
    for (at, rule) in value.get("egress").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let path = format!("{path}.egress[{at}]");
        match rule_of(rule, "to").and_then(|rule| without_metadata(draft.blocks_metadata, rule)) {
            Ok(rule) => {
                egress.push(rule);
                draft.carried(&path, EGRESS);
            }
            Err(problem) => not_converted(draft, &path, &problem),
        }
    }
    draft.set_service(EGRESS, egress.into());
    let mut ingress = vec![];
    for (at, rule) in value.get("ingress").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let path = format!("{path}.ingress[{at}]");
        match rule_of(rule, "from") {
            Ok(rule) if rule["to"] == json!([]) => not_converted(draft, &path, "any source"),
            Ok(rule) if !reaches_server(&rule) => {
                not_converted(draft, &path, "other ports than the lab's server");
            }
            Ok(rule) => {
                ingress.extend(rule["to"].as_array().cloned().unwrap_or_default());
                let note = "The peers may connect to the port of the lab's server, and to no other";
                draft.carried_with(&path, "lab.network_policy.ingress", note);
            }
            Err(problem) => not_converted(draft, &path, &problem),
        }
    }
    if !ingress.is_empty() {
        draft.set_service("lab.network_policy.ingress", of_hub.into_iter().chain(ingress).collect());
    }
    others(draft, path, value);
}

/// Keeps the rules for what the Hub may connect to.
pub(crate) fn of_hub(draft: &mut Draft<'_>, path: &str, value: &Value) {
    draft.hub_egress = repeated(draft, path, value);
}

/// Keeps the rules for what the Hub's proxy may connect to.
pub(crate) fn of_proxy(draft: &mut Draft<'_>, path: &str, value: &Value) {
    draft.proxy_egress = repeated(draft, path, value);
}

fn repeated(draft: &mut Draft<'_>, path: &str, value: &Value) -> Vec<Value> {
    match value {
        Value::Array(rules) if !rules.is_empty() => {
            draft.stays(
                path,
                "`hub-values.yaml` repeats the rules, before those for labs and for this service",
            );
            rules.clone()
        }
        _ if is_nothing(value) => {
            draft.not_needed(path, "has no value");
            Vec::new()
        }
        _ => {
            draft.wrong_form(path);
            Vec::new()
        }
    }
}

/// True for a rule of ingress for all ports, or for that of the lab's server.
fn reaches_server(rule: &Value) -> bool {
    let ports = rule["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    ports.is_empty() || ports.iter().any(|port| port["port"] == 8888 && port["protocol"] == "TCP")
}

/// Takes the metadata of the cloud's machines out of a rule of egress, if something else blocked them before.
fn without_metadata(blocked: bool, mut rule: Value) -> Result<Value, String> {
    if !blocked {
        return Ok(rule);
    }
    let peers = rule["to"].as_array_mut().filter(|peers| !peers.is_empty());
    let Some(peers) = peers else {
        return Err("any destination, which would be the metadata of the cloud, too".to_owned());
    };
    for peer in peers {
        let covers = |cidr: &str| cidr.ends_with("/0") && !cidr.contains(':') || cidr.starts_with("169.254.");
        if peer.get("cidr").and_then(Value::as_str).is_some_and(covers) {
            if peer["cidr"] == METADATA {
                return Err("the metadata of the cloud's machines, which were blocked".to_owned());
            }
            if let Some(except) = peer["except"].as_array_mut()
                && !except.iter().any(|range| range == METADATA)
            {
                except.push(METADATA.into());
            }
        }
    }
    Ok(rule)
}

fn others(draft: &mut Draft<'_>, path: &str, value: &Value) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = below(path, key);
        match key.as_str() {
            "enabled" => {}
            "egress" | "ingress" if value.is_array() => {}
            "egressAllowRules" if value.is_object() => allow_rules(draft, &path, value),
            _ if is_nothing(value) || value == "ignore" => draft.not_needed(&path, "has no value"),
            "interNamespaceAccessLabels" => draft.open(
                &path,
                "pods of other namespaces with the label `hub.jupyter.org/network-access-singleuser` could connect to labs",
                "Name them in `lab.network_policy.ingress`",
            ),
            "allowedIngressPorts" => draft.open(
                &path,
                "opened further ports of labs",
                "`lab.network_policy` opens the port of the lab's server only; add a NetworkPolicy of your own for others",
            ),
            _ => draft.open(&path, "is no key of the chart that this program knows", "It has no counterpart here"),
        }
    }
}

/// Reports rules of other names.
fn allow_rules(draft: &mut Draft<'_>, path: &str, value: &Value) {
    for name in value.as_object().into_iter().flatten().map(|(name, _)| name) {
        if !RULES.contains(&name.as_str()) {
            draft.open(
                &below(path, name),
                "is no rule that this program knows",
                "Write it to `lab.network_policy.egress`",
            );
        }
    }
}

fn not_converted(draft: &mut Draft<'_>, path: &str, problem: &str) {
    draft.open(
        path,
        &format!("is a rule of the network policy of labs, with {problem}"),
        "Write it to `lab.network_policy` by labels, ranges and ports, or as a NetworkPolicy of your own for pods of labs",
    );
}

fn dns() -> Value {
    json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}])
}

fn kube_system() -> Value {
    json!([{"namespace_labels": {"kubernetes.io/metadata.name": "kube-system"}}])
}

fn addresses(ranges: &[&str], except: &[&str]) -> Value {
    ranges.iter().map(|range| json!({"cidr": range, "except": except})).collect()
}

/// A part of JupyterHub, in the namespace of the labs.
fn peer_of_hub(draft: &Draft<'_>, component: &str) -> Value {
    json!({"pod_labels": {"app": draft.hub.app, "component": component}})
}

fn to_hub(draft: &Draft<'_>, component: &str, port: u16) -> Value {
    json!({"to": [peer_of_hub(draft, component)], "ports": [{"port": port, "protocol": "TCP"}]})
}

/// Converts a rule of a NetworkPolicy; the error names the part that has no counterpart.
fn rule_of(rule: &Value, peers: &str) -> Result<Value, String> {
    let only = |of: &Value, known: &[&str]| match of.as_object() {
        Some(entries) => match entries.keys().find(|key| !known.contains(&key.as_str())) {
            Some(other) => Err(format!("`{other}`")),
            None => Ok(()),
        },
        None => Err("something that is no object".to_owned()),
    };
    only(rule, &[peers, "ports"])?;
    let labels = |selector: &Value| {
        only(selector, &["matchLabels"])?;
        Ok::<_, String>(selector.get("matchLabels").cloned().unwrap_or_else(|| json!({})))
    };
    let mut to = Vec::new();
    for peer in rule.get(peers).and_then(Value::as_array).into_iter().flatten() {
        only(peer, &["namespaceSelector", "podSelector", "ipBlock"])?;
        let mut converted = json!({});
        if let Some(block) = peer.get("ipBlock") {
            only(block, &["cidr", "except"])?;
            converted["cidr"] = block.get("cidr").cloned().unwrap_or_default();
            converted["except"] = block.get("except").cloned().unwrap_or_else(|| json!([]));
        }
        for (selector, key) in [("namespaceSelector", "namespace_labels"), ("podSelector", "pod_labels")] {
            if let Some(selector) = peer.get(selector) {
                converted[key] = labels(selector)?;
            }
        }
        to.push(converted);
    }
    let mut ports = Vec::new();
    for port in rule.get("ports").and_then(Value::as_array).into_iter().flatten() {
        only(port, &["port", "protocol"])?;
        let number = port.get("port").and_then(Value::as_u64).filter(|number| u16::try_from(*number).is_ok());
        let number = number.ok_or("a port without a number")?;
        let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
        if !matches!(protocol, "TCP" | "UDP") {
            return Err(format!("the protocol {protocol}"));
        }
        ports.push(json!({"port": number, "protocol": protocol}));
    }
    Ok(json!({"to": to, "ports": ports}))
}
