//! `ResourceQuota`: how much a namespace may hold. Quotas with scopes count everything, as if they had none.

use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::{self, Document, at, member};
use crate::apiserver::resource::Resource;
use crate::apiserver::store::{CollectionName, State, Transaction};
use crate::quantity;
use serde_json::{Map, Value, json};

/// 403 when the object is more than the quotas of its namespace leave.
pub(super) fn check_quota(resource: &Resource, object: &Document, state: &State) -> Result<(), Failure> {
    let namespace = metadata::namespace(object);
    let name = metadata::name(object);
    for quota in state.in_namespace("resourcequotas", namespace) {
        let quota_name = metadata::name(quota.document());
        let mut over = Vec::new();
        for (key, limit) in hard(quota.document()) {
            if let Some(missing) = unstated(resource, object, key) {
                let why = format!("failed quota: {quota_name}: must specify {key} for: {missing}");
                return Err(resource.forbidden(name, &why));
            }
            let asked = demand_of(&resource.qualified(), object, key);
            let used = usage(state, namespace, key);
            if asked > 0 && used + asked > limit {
                let [asked, used, limit] = [asked, used, limit].map(quantity::from_milli);
                over.push(format!("requested: {key}={asked}, used: {key}={used}, limited: {key}={limit}"));
            }
        }
        if !over.is_empty() {
            let why = format!("exceeded quota: {quota_name}, {}", over.join(", "));
            return Err(resource.forbidden(name, &why));
        }
    }
    Ok(())
}

/// Writes into the quotas of a namespace how much is used.
pub(crate) fn refresh_quotas(transaction: &mut Transaction<'_>, namespace: &str) {
    let state = transaction.state();
    let mut changed = Vec::new();
    for quota in state.in_namespace("resourcequotas", namespace) {
        let used: Map<String, Value> = hard(quota.document())
            .map(|(key, _)| (key.to_owned(), json!(quantity::from_milli(usage(state, namespace, key)))))
            .collect();
        let used = Value::Object(used);
        if at(quota.document(), "/status/used") != Some(&used) {
            let mut document = quota.document().clone();
            member(&mut document, "status").insert("used".to_owned(), used);
            changed.push(document);
        }
    }
    let collection = CollectionName::from("resourcequotas");
    for document in changed {
        transaction.put(&collection, document);
    }
}

/// The limits of a quota, in thousandths.
fn hard(quota: &Document) -> impl Iterator<Item = (&str, i128)> {
    let hard = at(quota, "/spec/hard").and_then(Value::as_object);
    hard.into_iter()
        .flatten()
        .filter_map(|(key, limit)| Some((key.as_str(), limit.as_str().and_then(quantity::milli)?)))
}

/// What a limit is about.
enum Counted<'a> {
    /// How many objects of a kind, as `plural.group`.
    Objects(String),
    /// How much pods ask for: `requests` or `limits`, of a resource.
    Pods(&'a str, &'a str),
    /// How much storage claims ask for.
    Storage,
}

fn counted(key: &str) -> Counted<'_> {
    match (key, key.split_once('.')) {
        ("cpu" | "memory" | "ephemeral-storage", _) => Counted::Pods("requests", key),
        ("requests.storage", _) => Counted::Storage,
        (_, Some((kind @ ("requests" | "limits"), resource))) => Counted::Pods(kind, resource),
        // `count/leases.coordination.k8s.io` or, for old kinds, `pods`.
        _ => Counted::Objects(key.strip_prefix("count/").unwrap_or(key).to_owned()),
    }
}

/// How much of what a limit is about an object takes, in thousandths.
fn demand_of(collection: &str, object: &Document, key: &str) -> i128 {
    // Even ended pods are objects; `pods` and their resources count those that run, or will.
    let ended = collection == "pods" && has_ended(object);
    match counted(key) {
        Counted::Objects(kind) if kind == collection && !(ended && key == "pods") => 1000,
        Counted::Pods(kind, resource) if collection == "pods" && !ended => {
            demand_of_pod(object, kind, resource)
        }
        Counted::Storage if collection == "persistentvolumeclaims" => {
            let storage = at(object, "/spec/resources/requests/storage").and_then(Value::as_str);
            storage.and_then(quantity::milli).unwrap_or(0)
        }
        _ => 0,
    }
}

fn usage(state: &State, namespace: &str, key: &str) -> i128 {
    let collection = match counted(key) {
        Counted::Objects(kind) => kind,
        Counted::Pods(..) => "pods".to_owned(),
        Counted::Storage => "persistentvolumeclaims".to_owned(),
    };
    let objects = state.in_namespace(&collection, namespace);
    objects.map(|object| demand_of(&collection, object.document(), key)).sum()
}

/// The containers that do not state what a limit of CPU or memory counts.
fn unstated(resource: &Resource, object: &Document, key: &str) -> Option<String> {
    let Counted::Pods(kind, name @ ("cpu" | "memory")) = counted(key) else { return None };
    if !resource.is_core("pods") {
        return None;
    }
    let silent: Vec<_> = containers(object, "containers")
        .filter(|container| amount(container, kind, name).is_none())
        .filter_map(|container| container.get("name").and_then(Value::as_str))
        .collect();
    (!silent.is_empty()).then(|| silent.join(","))
}

fn containers<'a>(pod: &'a Document, list: &str) -> impl Iterator<Item = &'a Value> {
    at(pod, &format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten()
}

/// What a container asks for (`requests` or `limits`) of a resource (`cpu`).
fn amount<'a>(container: &'a Value, kind: &str, resource: &str) -> Option<&'a str> {
    container.get("resources")?.get(kind)?.get(resource)?.as_str()
}

/// How much of a resource a pod asks for, in thousandths: its containers together, or its largest init container if that
/// is more.
fn demand_of_pod(pod: &Document, kind: &str, resource: &str) -> i128 {
    let one = |container: &Value| amount(container, kind, resource).and_then(quantity::milli).unwrap_or(0);
    let together: i128 = containers(pod, "containers").map(one).sum();
    containers(pod, "initContainers").map(one).fold(together, i128::max)
}

/// Whether a pod has ended, and asks for nothing any more.
fn has_ended(pod: &Document) -> bool {
    matches!(at(pod, "/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"))
}

/// How a pod stands when memory runs short (`status.qosClass`).
pub(super) fn quality_of_service(pod: &Document) -> &'static str {
    let all = || containers(pod, "containers").chain(containers(pod, "initContainers"));
    let amounts = |container, name| (amount(container, "requests", name), amount(container, "limits", name));
    let pairs = || all().flat_map(|container| ["cpu", "memory"].map(|name| amounts(container, name)));
    if pairs().all(|pair| pair == (None, None)) {
        "BestEffort"
    } else if pairs().all(|(request, limit)| limit.is_some() && (request.is_none() || request == limit)) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
