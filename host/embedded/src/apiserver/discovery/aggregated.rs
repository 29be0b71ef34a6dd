//! All of discovery in one answer: `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.

use super::{VERBS, groups, subresource_verbs};
use crate::apiserver::resource::Resource;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) const CONTENT_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether the client takes this form.
pub(super) fn is_wanted(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let mut parts: Vec<_> = range.split(';').map(str::trim).collect();
        parts.sort_unstable();
        parts == ["application/json", "as=APIGroupDiscoveryList", "g=apidiscovery.k8s.io", "v=v2"]
    })
}

/// The core group, or all the others.
pub(super) fn list(kinds: &[Arc<Resource>], core: bool) -> Value {
    let groups = if core { vec![("", vec!["v1"])] } else { groups::versions(kinds) };
    let items: Vec<Value> = groups.iter().map(|(name, versions)| group(kinds, name, versions)).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn group(kinds: &[Arc<Resource>], name: &str, versions: &[&str]) -> Value {
    let version = |version: &&str| {
        let of = kinds.iter().filter(|kind| kind.group == name && kind.version == *version);
        json!({"version": version, "freshness": "Current", "resources": of.map(|kind| resource(kind)).collect::<Vec<_>>()})
    };
    let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
    json!({"metadata": metadata, "versions": versions.iter().map(version).collect::<Vec<_>>()})
}

fn resource(kind: &Resource) -> Value {
    let response = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let subresource = |name: &&str| json!({"subresource": name, "responseKind": response, "verbs": subresource_verbs(name)});
    json!({
        "resource": kind.plural, "responseKind": response,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": VERBS,
        "shortNames": kind.short_names, "categories": kind.categories,
        "subresources": kind.subresources.iter().map(subresource).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::is_wanted;

    #[test]
    fn only_the_known_version_is_given() {
        assert!(is_wanted(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        ));
        assert!(!is_wanted("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"));
        assert!(!is_wanted("application/json"));
    }
}
