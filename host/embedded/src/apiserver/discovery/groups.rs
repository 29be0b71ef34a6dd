//! Groups, their versions, and the kinds of a version: `/apis`, `/apis/{group}`, `/apis/{group}/{version}`.

use super::{VERBS, subresource_verbs};
use crate::apiserver::resource::Resource;
use serde_json::{Value, json};
use std::sync::Arc;

/// The named groups and their versions, in the order of the table.
pub(super) fn versions(kinds: &[Arc<Resource>]) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
        match groups.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, versions)) if versions.contains(&kind.version.as_str()) => {}
            Some((_, versions)) => versions.push(&kind.version),
            None => groups.push((&kind.group, vec![&kind.version])),
        }
    }
    groups
}

/// `APIGroupList`
pub(super) fn list(kinds: &[Arc<Resource>]) -> Value {
    let groups: Vec<Value> = versions(kinds).iter().map(|(name, versions)| group(name, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `APIGroup`
pub(super) fn one(kinds: &[Arc<Resource>], name: &str) -> Option<Value> {
    let groups = versions(kinds);
    let (name, versions) = groups.iter().find(|(group, _)| *group == name)?;
    let mut found = group(name, versions);
    found["kind"] = json!("APIGroup");
    found["apiVersion"] = json!("v1");
    Some(found)
}

fn group(name: &str, versions: &[&str]) -> Value {
    let told = |v: &&str| json!({"groupVersion": format!("{name}/{v}"), "version": v});
    json!({
        "name": name, "versions": versions.iter().map(told).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map_or(Value::Null, told),
    })
}

/// `APIResourceList`
pub(super) fn kinds(kinds: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let kinds: Vec<_> = kinds.iter().filter(|r| r.group == group && r.version == version).collect();
    let resources: Vec<Value> = kinds.iter().flat_map(|resource| entries(resource)).collect();
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": kinds.first()?.api_version(), "resources": resources,
    }))
}

fn entries(resource: &Resource) -> Vec<Value> {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": VERBS,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let parts = resource.subresources.iter().map(|&name| {
        json!({
            "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": subresource_verbs(name),
        })
    });
    std::iter::once(entry).chain(parts).collect()
}
