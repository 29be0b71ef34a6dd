//! The environment of a container: `env`, `envFrom`, `valueFrom` and `$(VAR)`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvFromSource, EnvVarSource, Pod, Secret};
use kube::api::ListParams;
use kube::{Api, Client};
use thiserror::Error;

use super::status::spec;

/// A pod, and what the node knows of it before its status says so.
pub(crate) struct PodContext<'a> {
    pub(crate) client: &'a Client,
    pub(crate) pod: &'a Pod,
    pub(crate) pod_ip: IpAddr,
    pub(crate) node_name: &'a str,
}

/// The entries of one object.
pub(crate) type Entries = BTreeMap<String, Vec<u8>>;

/// A kind of object whose entries become variables and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }
}

/// The `ConfigMap`s and Secrets of a pod's namespace, by kind and name.
#[derive(Debug, Default, Clone)]
pub(crate) struct References(BTreeMap<(Kind, String), Entries>);

impl References {
    /// Reads them all: two requests, however many objects a pod refers to.
    pub(crate) async fn read(context: &PodContext<'_>) -> Result<Self, String> {
        let namespace = context.pod.metadata.namespace.as_deref().unwrap_or("default");
        let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
        let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
        let all = ListParams::default();
        let (maps, secrets) = futures::try_join!(maps.list(&all), secrets.list(&all))
            .map_err(|error| format!("the ConfigMaps and Secrets could not be read: {error}"))?;
        Ok(Self::of(maps.items, secrets.items))
    }

    pub(crate) fn of(maps: Vec<ConfigMap>, secrets: Vec<Secret>) -> Self {
        let bytes = |(key, ByteString(bytes))| (key, bytes);
        let maps = maps.into_iter().map(|map| {
            let texts = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
            let entries = texts.chain(map.binary_data.into_iter().flatten().map(bytes)).collect();
            ((Kind::ConfigMap, map.metadata.name.unwrap_or_default()), entries)
        });
        let secrets = secrets.into_iter().map(|secret| {
            let entries = secret.data.into_iter().flatten().map(bytes).collect();
            ((Kind::Secret, secret.metadata.name.unwrap_or_default()), entries)
        });
        Self(maps.chain(secrets).collect())
    }

    /// The entries of an object; none where it is missing and optional.
    pub(crate) fn entries(
        &self,
        kind: Kind,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Option<&Entries>, ConfigError> {
        match self.0.get(&(kind, name.to_owned())) {
            None if optional != Some(true) => {
                Err(ConfigError::NotFound { kind: kind.as_str(), name: name.to_owned() })
            }
            found => Ok(found),
        }
    }
}

/// Why a container cannot be created yet, in the words of a kubelet. Shown as `CreateContainerConfigError`, and tried
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ConfigError {
    #[error("{kind} {name:?} not found")]
    NotFound { kind: &'static str, name: String },
    #[error("couldn't find key {key} in {kind} {name:?}")]
    KeyNotFound { kind: &'static str, name: String, key: String },
    #[error("unsupported valueFrom: {0}")]
    Unsupported(String),
    #[error("invalid UTF-8 in key {key} of {name:?}: an environment variable must be text")]
    NotText { name: String, key: String },
}

/// The environment of one container.
pub(crate) fn resolve(
    context: &PodContext<'_>,
    container: &Container,
    references: &References,
) -> Result<BTreeMap<String, String>, ConfigError> {
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

/// All entries of an object.
fn from_all(source: &EnvFromSource, references: &References) -> Result<Vec<(String, String)>, ConfigError> {
    let (kind, name, optional) = match (&source.config_map_ref, &source.secret_ref) {
        (Some(map), _) => (Kind::ConfigMap, &map.name, map.optional),
        (None, Some(secret)) => (Kind::Secret, &secret.name, secret.optional),
        (None, None) => return Ok(Vec::new()),
    };
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let entries = references.entries(kind, name, optional)?.into_iter().flatten();
    entries.map(|(key, bytes)| Ok((format!("{prefix}{key}"), text(name, key, bytes)?))).collect()
}

/// One value; none where its source is missing and optional.
fn from_source(
    context: &PodContext<'_>,
    source: &EnvVarSource,
    references: &References,
) -> Result<Option<String>, ConfigError> {
    if let Some(field) = &source.field_ref {
        return pod_field(context, &field.field_path).map(Some);
    }
    let (kind, name, key, optional) = match (&source.config_map_key_ref, &source.secret_key_ref) {
        (Some(map), _) => (Kind::ConfigMap, &map.name, &map.key, map.optional),
        (None, Some(secret)) => (Kind::Secret, &secret.name, &secret.key, secret.optional),
        (None, None) => return Err(ConfigError::Unsupported("resourceFieldRef".to_owned())),
    };
    match references.entries(kind, name, optional)?.and_then(|entries| entries.get(key)) {
        Some(bytes) => text(name, key, bytes).map(Some),
        None if optional == Some(true) => Ok(None),
        None => Err(ConfigError::KeyNotFound { kind: kind.as_str(), name: name.clone(), key: key.clone() }),
    }
}

fn text(name: &str, key: &str, bytes: &[u8]) -> Result<String, ConfigError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| ConfigError::NotText { name: name.to_owned(), key: key.to_owned() })
}

/// The value of a field of the pod, as `fieldRef` names it.
fn pod_field(context: &PodContext<'_>, path: &str) -> Result<String, ConfigError> {
    let metadata = &context.pod.metadata;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let entry = |map: &Option<BTreeMap<String, String>>, key: &str| {
        map.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default()
    };
    let keyed = |field: &str| path.strip_prefix(field)?.strip_prefix("['")?.strip_suffix("']");
    Ok(match path {
        "metadata.name" => text(&metadata.name),
        "metadata.namespace" => text(&metadata.namespace),
        "metadata.uid" => text(&metadata.uid),
        "spec.nodeName" => context.node_name.to_owned(),
        "spec.serviceAccountName" => text(&spec(context.pod).service_account_name),
        "status.podIP" | "status.podIPs" => context.pod_ip.to_string(),
        "status.hostIP" | "status.hostIPs" => super::addresses::HOST_IP.to_string(),
        _ => match (keyed("metadata.labels"), keyed("metadata.annotations")) {
            (Some(key), _) => entry(&metadata.labels, key),
            (None, Some(key)) => entry(&metadata.annotations, key),
            (None, None) => return Err(ConfigError::Unsupported(format!("fieldRef {path}"))),
        },
    })
}

/// Replaces `$(NAME)` by what `lookup` knows. A reference that cannot be resolved stays as it is; `$$` is a literal `$`
/// (Kubernetes API, `Container.args`).
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
        let lookup = |name: &str| match name {
            "USER" => Some("alice"),
            "NESTED" => Some("$(USER)"),
            _ => None,
        };
        for (text, expect) in [
            ("/home/$(USER)/x", "/home/alice/x"),
            ("$(MISSING)", "$(MISSING)"),
            ("$$(USER)", "$(USER)"),
            ("$$$(USER)", "$alice"),
            ("$(NESTED)", "$(USER)"),
            ("$(USER", "$(USER"),
            ("$USER ${USER}", "$USER ${USER}"),
            ("é$(USER)é", "éaliceé"),
        ] {
            assert_eq!(expand(text, lookup), expect, "{text:?}");
        }
    }
}
