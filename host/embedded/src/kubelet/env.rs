//! The environment of a container: `env`, `envFrom`, `valueFrom` and `$(VAR)`.
//!
//! Errors are messages of `CreateContainerConfigError` and `FailedMount`, in the wording of a kubelet.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvFromSource, EnvVarSource, Pod, Secret};
use kube::api::ListParams;
use kube::{Api, Client};

use super::status::spec;

/// A pod, with the node's data about it that may not be in its status yet.
pub(crate) struct PodContext<'a> {
    pub(crate) client: &'a Client,
    pub(crate) pod: &'a Pod,
    pub(crate) pod_ip: IpAddr,
    pub(crate) node_name: &'a str,
}

/// The entries of one object.
pub(crate) type Entries = BTreeMap<String, Vec<u8>>;

const CONFIG_MAP: &str = "configmap";
const SECRET: &str = "secret";

/// A reference to a `ConfigMap` or Secret, whose entries become variables and files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference<'a> {
    kind: &'static str,
    name: &'a str,
    /// True if a missing object or entry is not an error.
    pub(crate) optional: bool,
}

impl<'a> Reference<'a> {
    pub(crate) fn config_map(name: &'a str, optional: Option<bool>) -> Self {
        Self { kind: CONFIG_MAP, name, optional: optional.unwrap_or(false) }
    }

    pub(crate) fn secret(name: &'a str, optional: Option<bool>) -> Self {
        Self { kind: SECRET, ..Self::config_map(name, optional) }
    }
}

/// The `ConfigMap`s and Secrets of a pod's namespace, by kind and name.
#[derive(Debug, Default, Clone)]
pub(crate) struct References(BTreeMap<(&'static str, String), Entries>);

impl References {
    /// Reads all `ConfigMap`s and Secrets of the namespace. This takes two requests, however many objects a pod refers
    /// to.
    pub(crate) async fn read(context: &PodContext<'_>) -> Result<Self, String> {
        let namespace = context.pod.metadata.namespace.as_deref().unwrap_or("default");
        let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
        let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
        let all = ListParams::default();
        let (maps, secrets) = futures::try_join!(maps.list(&all), secrets.list(&all))
            .map_err(|error| format!("the ConfigMaps and Secrets could not be read: {error}"))?;
        Ok(Self::from_objects(maps.items, secrets.items))
    }

    pub(crate) fn from_objects(maps: Vec<ConfigMap>, secrets: Vec<Secret>) -> Self {
        let bytes = |(key, ByteString(bytes))| (key, bytes);
        let maps = maps.into_iter().map(|map| {
            let texts = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
            let entries = texts.chain(map.binary_data.into_iter().flatten().map(bytes)).collect();
            ((CONFIG_MAP, map.metadata.name.unwrap_or_default()), entries)
        });
        let secrets = secrets.into_iter().map(|secret| {
            let entries = secret.data.into_iter().flatten().map(bytes).collect();
            ((SECRET, secret.metadata.name.unwrap_or_default()), entries)
        });
        Self(maps.chain(secrets).collect())
    }

    /// Returns the entries of an object, or `None` if it is missing and optional.
    pub(crate) fn entries(&self, reference: Reference<'_>) -> Result<Option<&Entries>, String> {
        let Reference { kind, name, optional } = reference;
        match self.0.get(&(kind, name.to_owned())) {
            None if !optional => Err(format!("{kind} {name:?} not found")),
            found => Ok(found),
        }
    }
}

/// Resolves the environment of one container.
pub(crate) fn resolve(
    context: &PodContext<'_>,
    container: &Container,
    references: &References,
) -> Result<BTreeMap<String, String>, String> {
    let mut env = BTreeMap::new();
    for source in container.env_from.iter().flatten() {
        env.extend(from_all(source, references)?);
    }
    for variable in container.env.iter().flatten() {
        let value = if let Some(source) = &variable.value_from {
            from_source(context, source, references)?
        } else {
            let text = variable.value.as_deref().unwrap_or_default();
            Some(expand(text, |name| env.get(name).map(String::as_str)))
        };
        env.extend(value.map(|value| (variable.name.clone(), value)));
    }
    Ok(env)
}

/// Returns all entries of an object as variables.
fn from_all(source: &EnvFromSource, references: &References) -> Result<Vec<(String, String)>, String> {
    let reference = match (&source.config_map_ref, &source.secret_ref) {
        (Some(map), _) => Reference::config_map(&map.name, map.optional),
        (None, Some(secret)) => Reference::secret(&secret.name, secret.optional),
        (None, None) => return Ok(Vec::new()),
    };
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let entries = references.entries(reference)?.into_iter().flatten();
    entries.map(|(key, bytes)| Ok((format!("{prefix}{key}"), text(reference, key, bytes)?))).collect()
}

/// Returns one value, or `None` if its source is missing and optional.
fn from_source(
    context: &PodContext<'_>,
    source: &EnvVarSource,
    references: &References,
) -> Result<Option<String>, String> {
    if let Some(field) = &source.field_ref {
        return pod_field(context, &field.field_path).map(Some);
    }
    let (reference, key) = match (&source.config_map_key_ref, &source.secret_key_ref) {
        (Some(map), _) => (Reference::config_map(&map.name, map.optional), &map.key),
        (None, Some(secret)) => (Reference::secret(&secret.name, secret.optional), &secret.key),
        (None, None) => return Err("unsupported valueFrom: resourceFieldRef".to_owned()),
    };
    match references.entries(reference)?.and_then(|entries| entries.get(key)) {
        Some(bytes) => text(reference, key, bytes).map(Some),
        None if reference.optional => Ok(None),
        None => Err(format!("couldn't find key {key} in {} {:?}", reference.kind, reference.name)),
    }
}

fn text(reference: Reference<'_>, key: &str, bytes: &[u8]) -> Result<String, String> {
    let Reference { kind, name, .. } = reference;
    String::from_utf8(bytes.to_vec())
        .map_err(|_| format!("invalid UTF-8 in key {key} of {kind} {name:?}: a variable must be text"))
}

/// Returns the value of a field of the pod. `path` is that of a `fieldRef`.
fn pod_field(context: &PodContext<'_>, path: &str) -> Result<String, String> {
    let metadata = &context.pod.metadata;
    let keyed = |field: &str, map: &Option<BTreeMap<String, String>>| {
        let key = path.strip_prefix(field)?.strip_prefix("['")?.strip_suffix("']")?;
        Some(map.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default())
    };
    let value = match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "spec.nodeName" => Some(context.node_name.to_owned()),
        "spec.serviceAccountName" => spec(context.pod).service_account_name.clone(),
        "status.podIP" | "status.podIPs" => Some(context.pod_ip.to_string()),
        "status.hostIP" | "status.hostIPs" => Some(super::addresses::HOST_IP.to_string()),
        _ => keyed("metadata.labels", &metadata.labels)
            .or_else(|| keyed("metadata.annotations", &metadata.annotations)),
    };
    value.ok_or_else(|| format!("unsupported valueFrom: fieldRef {path}"))
}

/// Replaces `$(NAME)` with the result of `lookup`. A reference that cannot be resolved stays as it is; `$$` is a
/// literal `$` (Kubernetes API, `Container.args`).
pub(crate) fn expand<'a>(text: &str, lookup: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            rest = tail;
        } else if let Some((name, tail)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            out.push_str(lookup(name).unwrap_or(&rest[dollar..rest.len() - tail.len()]));
            rest = tail;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn references_in_texts_are_expanded_as_in_kubernetes() {
        let lookup = |name: &str| (name == "USER").then_some("$(alice)");
        for (text, expect) in [
            ("é$(USER)/x", "é$(alice)/x"),
            ("$(MISSING)", "$(MISSING)"),
            ("$$(USER) $$$(USER)", "$(USER) $$(alice)"),
            ("$(USER", "$(USER"),
            ("$USER ${USER}", "$USER ${USER}"),
        ] {
            assert_eq!(expand(text, lookup), expect, "{text:?}");
        }
    }
}
