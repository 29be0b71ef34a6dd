//! `ResourceQuota`: the limits on the content of a namespace. Quotas with scopes count everything, as if they had none.

use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::{self, Document, at, member};
use crate::apiserver::resource::Resource;
use crate::apiserver::store::{CollectionName, State, Transaction};
use crate::quantity;
use serde_json::{Map, Value, json};

/// Fails with 403 if the object exceeds the remaining quotas of its namespace.
pub(super) fn check_quota(resource: &Resource, object: &Document, state: &State) -> Result<(), Failure> {
    let namespace = metadata::namespace(object);
    let name = metadata::name(object);
    for quota in state.in_namespace("resourcequotas", namespace) {
        let quota_name = metadata::name(quota.document());
        let mut over = Vec::new();
        for (key, limit) in hard(quota.document()) {
            let counted = counted(key);
            if *counted.collection != *resource.collection {
                continue;
            }
            if let Some(missing) = unstated(object, key) {
                let why = format!("failed quota: {quota_name}: must specify {key} for: {missing}");
                return Err(resource.forbidden(name, &why));
            }
            let asked = demand_of(&counted, object);
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

/// Updates the usage in the quotas of a namespace.
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

/// Returns the limits of a quota, in thousandths.
fn hard(quota: &Document) -> impl Iterator<Item = (&str, i128)> {
    let hard = at(quota, "/spec/hard").and_then(Value::as_object);
    hard.into_iter()
        .flatten()
        .filter_map(|(key, limit)| Some((key.as_str(), limit.as_str().and_then(quantity::milli)?)))
}

/// The subject of a limit.
struct Counted<'a> {
    /// The objects that the limit counts: `pods`, or `leases.coordination.k8s.io`.
    collection: String,
    /// The amount that is added up: `requests` or `limits`, and the resource. If `None`, the limit is on the number of
    /// objects.
    amount: Option<(&'a str, &'a str)>,
    /// True if pods that have ended do not count.
    living: bool,
}

fn counted(key: &str) -> Counted<'_> {
    let (collection, amount) = match (key, key.split_once('.')) {
        ("cpu" | "memory" | "ephemeral-storage", _) => ("pods", Some(("requests", key))),
        ("requests.storage", _) => ("persistentvolumeclaims", Some(("requests", "storage"))),
        (_, Some((kind @ ("requests" | "limits"), resource))) => ("pods", Some((kind, resource))),
        // `count/pods` counts ended pods, too.
        _ => (key.strip_prefix("count/").unwrap_or(key), None),
    };
    Counted { collection: collection.to_owned(), amount, living: !key.starts_with("count/") }
}

/// Returns an object's share of a limit's subject, in thousandths.
fn demand_of(counted: &Counted<'_>, object: &Document) -> i128 {
    let phase = at(object, "/status/phase").and_then(Value::as_str);
    if counted.living && counted.collection == "pods" && matches!(phase, Some("Succeeded" | "Failed")) {
        return 0;
    }
    let Some((kind, resource)) = counted.amount else { return 1000 };
    let of = |holder: &Value| amount(holder, kind, resource).and_then(quantity::milli).unwrap_or(0);
    if counted.collection != "pods" {
        return object.get("spec").map_or(0, of);
    }
    // The sum of a pod's containers, or its largest init container if that is more.
    let together: i128 = containers(object, "containers").map(of).sum();
    containers(object, "initContainers").map(of).fold(together, i128::max)
}

fn usage(state: &State, namespace: &str, key: &str) -> i128 {
    let counted = counted(key);
    let objects = state.in_namespace(&counted.collection, namespace);
    objects.map(|object| demand_of(&counted, object.document())).sum()
}

/// Returns the containers that do not set the amount of CPU or memory that a limit counts.
fn unstated(pod: &Document, key: &str) -> Option<String> {
    let (kind, name) = counted(key).amount.filter(|(_, name)| matches!(*name, "cpu" | "memory"))?;
    let silent: Vec<_> = containers(pod, "containers")
        .filter(|container| amount(container, kind, name).is_none())
        .filter_map(|container| container.get("name").and_then(Value::as_str))
        .collect();
    (!silent.is_empty()).then(|| silent.join(","))
}

fn containers<'a>(pod: &'a Document, list: &str) -> impl Iterator<Item = &'a Value> {
    at(pod, &format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the `requests` or `limits` of a container or a claim for a resource (`cpu`).
fn amount<'a>(holder: &'a Value, kind: &str, resource: &str) -> Option<&'a str> {
    holder.get("resources")?.get(kind)?.get(resource)?.as_str()
}

/// Returns the quality-of-service class of a pod (`status.qosClass`), which matters when memory runs short.
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
