//! How lists and maps of a kind merge: as one value, as a set, or item by item (`x-kubernetes-list-type`,
//! `x-kubernetes-map-type`, and the merge keys of strategic merge patches).
//!
//! `k8s_openapi::DeepMerge` has the same knowledge in its types, but can neither remove a field nor say which fields a
//! document names, which is what apply and strategic merge need. The table below is checked against it by a test.

use serde_json::Value;
use std::sync::Arc;

/// How a list merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListType<'a> {
    /// Replaced as a whole.
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects, told apart by these fields.
    Map(Vec<&'a str>),
}

/// The merge rules of a kind.
#[derive(Clone, Debug)]
pub(super) enum Schema {
    /// A kind of Kubernetes itself.
    BuiltIn,
    /// The `openAPIV3Schema` of a custom kind.
    Custom(Arc<Value>),
}

impl Schema {
    /// The rules for the whole object.
    pub(super) fn root(&self) -> Shape<'_> {
        match self {
            Self::BuiltIn => Shape::BuiltIn { parent: "", field: "" },
            Self::Custom(schema) => Shape::Custom { node: Some(schema), root: true },
        }
    }
}

/// The rules at one place of a document.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'a> {
    BuiltIn { parent: &'a str, field: &'a str },
    Custom { node: Option<&'a Value>, root: bool },
}

impl<'a> Shape<'a> {
    /// The rules for a field of this object.
    pub(super) fn field<'b>(self, name: &'b str) -> Shape<'b>
    where
        'a: 'b,
    {
        match self {
            Self::BuiltIn { field, .. } => Shape::BuiltIn { parent: field, field: name },
            Self::Custom { root: true, .. } if name == "metadata" => {
                Shape::BuiltIn { parent: "", field: name }
            }
            Self::Custom { node, .. } => {
                let next = node.and_then(|n| {
                    n.get("properties")
                        .and_then(|p| p.get(name))
                        .or_else(|| n.get("additionalProperties").filter(|v| v.is_object()))
                });
                Shape::Custom { node: next, root: false }
            }
        }
    }

    /// The rules for an item of this list.
    pub(super) fn item(self) -> Self {
        match self {
            Self::BuiltIn { .. } => self,
            Self::Custom { node, .. } => {
                Self::Custom { node: node.and_then(|n| n.get("items")), root: false }
            }
        }
    }

    /// How this list merges.
    pub(super) fn list_type(self) -> ListType<'a> {
        match self {
            Self::BuiltIn { parent, field } => built_in_list(parent, field),
            Self::Custom { node, .. } => {
                let text = |name: &str| node.and_then(|n| n.get(name));
                match text("x-kubernetes-list-type").and_then(Value::as_str) {
                    Some("set") => ListType::Set,
                    Some("map") => {
                        let keys = text("x-kubernetes-list-map-keys").and_then(Value::as_array);
                        ListType::Map(keys.into_iter().flatten().filter_map(Value::as_str).collect())
                    }
                    _ => ListType::Atomic,
                }
            }
        }
    }

    /// Whether this object is one value to an apply.
    pub(super) fn is_atomic_map(self) -> bool {
        match self {
            Self::BuiltIn { field, .. } => ATOMIC_MAPS.contains(&field),
            Self::Custom { node, .. } => {
                node.and_then(|n| n.get("x-kubernetes-map-type")).and_then(Value::as_str) == Some("atomic")
            }
        }
    }
}

/// What a key field of a list item is when it is not given.
pub(super) fn key_default(field: &str) -> Option<&'static str> {
    (field == "protocol").then_some("TCP")
}

/// References and selectors, which make sense only as a whole.
const ATOMIC_MAPS: &[&str] = &[
    "selector",
    "nodeSelector",
    "labelSelector",
    "podSelector",
    "namespaceSelector",
    "secretRef",
    "secretKeyRef",
    "configMapKeyRef",
    "fieldRef",
    "resourceFieldRef",
    "claimRef",
    "involvedObject",
    "roleRef",
    "targetRef",
    "dataSource",
];

fn built_in_list(parent: &str, field: &str) -> ListType<'static> {
    let by = |key| ListType::Map(vec![key]);
    match (parent, field) {
        ("metadata", "ownerReferences") => by("uid"),
        ("metadata", "finalizers") => ListType::Set,
        (
            _,
            "containers"
            | "initContainers"
            | "ephemeralContainers"
            | "volumes"
            | "env"
            | "resourceClaims"
            | "schedulingGates",
        )
        | ("spec", "imagePullSecrets")
        | ("", "secrets")
        | ("resources", "claims") => by("name"),
        (_, "volumeMounts") => by("mountPath"),
        (_, "volumeDevices") => by("devicePath"),
        (_, "topologySpreadConstraints") => ListType::Map(vec!["topologyKey", "whenUnsatisfiable"]),
        ("containers" | "initContainers" | "ephemeralContainers", "ports") => {
            ListType::Map(vec!["containerPort", "protocol"])
        }
        ("spec", "ports") => ListType::Map(vec!["port", "protocol"]),
        ("status", "conditions" | "addresses") => by("type"),
        ("spec", "hostAliases") | ("status", "podIPs") => by("ip"),
        _ => ListType::Atomic,
    }
}
