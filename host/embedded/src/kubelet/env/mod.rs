//! The environment of a container: `env`, `envFrom`, `valueFrom` and `$(VAR)`.

mod field;

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Container, EnvFromSource, EnvVarSource, Pod, Secret},
};
use kube::{
    Api, Client,
    api::{ListParams, ObjectList},
};
use thiserror::Error;

pub(crate) use field::PodFacts;
use field::{pod_field, resource_field};

/// The entries of objects, by the objects' names.
pub(crate) type Entries = BTreeMap<String, BTreeMap<String, Vec<u8>>>;

/// The `ConfigMap`s and Secrets of a pod's namespace.
#[derive(Debug, Default, Clone)]
pub(crate) struct References {
    pub(crate) config_maps: Entries,
    pub(crate) secrets: Entries,
}

impl References {
    /// Reads them all: two requests, whatever a pod refers to.
    pub(crate) async fn read(client: &Client, namespace: &str) -> Result<Self, kube::Error> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let all = ListParams::default();
        let (maps, secrets): (ObjectList<ConfigMap>, ObjectList<Secret>) =
            futures::try_join!(maps.list(&all), secrets.list(&all))?;
        Ok(Self::of(maps.items, secrets.items))
    }

    pub(crate) fn of(maps: Vec<ConfigMap>, secrets: Vec<Secret>) -> Self {
        let bytes = |(key, ByteString(bytes))| (key, bytes);
        let of_map = |map: ConfigMap| {
            let texts = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
            let entries = texts.chain(map.binary_data.into_iter().flatten().map(bytes)).collect();
            (map.metadata.name.unwrap_or_default(), entries)
        };
        let of_secret = |secret: Secret| {
            let entries = secret.data.into_iter().flatten().map(bytes).collect();
            (secret.metadata.name.unwrap_or_default(), entries)
        };
        Self {
            config_maps: maps.into_iter().map(of_map).collect(),
            secrets: secrets.into_iter().map(of_secret).collect(),
        }
    }

    /// The entries of an object; none where it is missing and optional.
    pub(crate) fn entries(
        &self,
        kind: Kind,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Option<&BTreeMap<String, Vec<u8>>>, ConfigError> {
        let objects = match kind {
            Kind::ConfigMap => &self.config_maps,
            Kind::Secret => &self.secrets,
        };
        match objects.get(name) {
            None if optional != Some(true) => {
                Err(ConfigError::NotFound { kind: kind.as_str(), name: name.to_owned() })
            }
            found => Ok(found),
        }
    }
}

/// A kind of object whose entries become variables and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Why a container cannot be created yet: shown as `CreateContainerConfigError`, and tried again.
///
/// The texts are those of a kubelet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ConfigError {
    #[error("{kind} {name:?} not found")]
    NotFound { kind: &'static str, name: String },
    #[error("couldn't find key {key} in {kind} {name:?}")]
    KeyNotFound { kind: &'static str, name: String, key: String },
    #[error("unsupported fieldPath: {path}")]
    UnsupportedField { path: String },
    #[error("invalid UTF-8 in key {key} of {name:?}: an environment variable must be text")]
    NotText { name: String, key: String },
}

/// The environment of one container.
pub(crate) fn resolve(
    pod: &Pod,
    container: &Container,
    references: &References,
    facts: &PodFacts,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut env = BTreeMap::new();
    for source in container.env_from.iter().flatten() {
        env.extend(from_all(source, references)?);
    }
    for variable in container.env.iter().flatten() {
        let value = if let Some(source) = &variable.value_from {
            from_source(pod, container, source, references, facts)?
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

/// One value; none where what it comes from is missing and optional.
fn from_source(
    pod: &Pod,
    container: &Container,
    source: &EnvVarSource,
    references: &References,
    facts: &PodFacts,
) -> Result<Option<String>, ConfigError> {
    if let Some(field) = &source.field_ref {
        return pod_field(pod, facts, &field.field_path).map(Some);
    }
    if let (Some(field), Some(spec)) = (&source.resource_field_ref, &pod.spec) {
        return resource_field(spec, facts, &container.name, field).map(Some);
    }
    let (kind, name, key, optional) = match (&source.config_map_key_ref, &source.secret_key_ref) {
        (Some(map), _) => (Kind::ConfigMap, &map.name, &map.key, map.optional),
        (None, Some(secret)) => (Kind::Secret, &secret.name, &secret.key, secret.optional),
        (None, None) => return Ok(None),
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
            if let Some(value) = lookup(name) {
                out.push_str(value);
            } else {
                out.push_str(&rest[dollar..rest.len() - tail.len()]);
            }
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
    use serde_json::{Value, json};

    use super::*;

    fn facts() -> PodFacts {
        PodFacts {
            pod_ip: "127.101.0.2".to_owned(),
            host_ip: "127.0.0.1".to_owned(),
            node_name: "local".to_owned(),
            node_cpu_milli: 4000,
            node_memory: 8 << 30,
        }
    }

    fn references() -> References {
        let map = json!({"metadata": {"name": "map"}, "data": {"A": "from-map", "B": "b"}});
        let secret = json!({"metadata": {"name": "hidden"}, "data": {"TOKEN": "c2VjcmV0", "BINARY": "/w=="}});
        References::of(
            vec![serde_json::from_value(map).unwrap()],
            vec![serde_json::from_value(secret).unwrap()],
        )
    }

    fn env_of(container: Value) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut container = container;
        container["name"] = json!("notebook");
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "nb", "namespace": "lab", "uid": "u-1", "labels": {"team": "blue"}},
            "spec": {"containers": [container], "serviceAccountName": "nb-alice"},
        }))
        .unwrap();
        let container = pod.spec.as_ref().unwrap().containers[0].clone();
        resolve(&pod, &container, &references(), &facts())
    }

    #[track_caller]
    fn expect(container: Value, values: &[(&str, &str)]) {
        let expected = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(env_of(container), Ok(expected));
    }

    #[test]
    fn later_sources_win() {
        expect(
            json!({
                "envFrom": [{"configMapRef": {"name": "map"}}, {"prefix": "P_", "configMapRef": {"name": "map"}}],
                "env": [{"name": "A", "value": "own"}, {"name": "C", "value": "$(A)-$(P_B)-$(LATER)"}, {"name": "LATER"}],
            }),
            &[
                ("A", "own"),
                ("B", "b"),
                ("C", "own-b-$(LATER)"),
                ("LATER", ""),
                ("P_A", "from-map"),
                ("P_B", "b"),
            ],
        );
    }

    #[test]
    fn fields_of_the_pod() {
        let field =
            |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        expect(
            json!({"env": [
                field("IP", "status.podIP"), field("HOST", "status.hostIP"), field("NAME", "metadata.name"),
                field("NODE", "spec.nodeName"), field("SA", "spec.serviceAccountName"),
                field("TEAM", "metadata.labels['team']"), field("NONE", "metadata.annotations['x']"),
                field("LABELS", "metadata.labels"),
            ]}),
            &[
                ("HOST", "127.0.0.1"),
                ("IP", "127.101.0.2"),
                ("LABELS", "team=\"blue\""),
                ("NAME", "nb"),
                ("NODE", "local"),
                ("NONE", ""),
                ("SA", "nb-alice"),
                ("TEAM", "blue"),
            ],
        );
        assert_eq!(
            env_of(json!({"env": [field("X", "spec.containers")]})),
            Err(ConfigError::UnsupportedField { path: "spec.containers".to_owned() })
        );
    }

    #[test]
    fn resources_in_units_of_the_divisor() {
        let resource = |name: &str, what: &str, divisor: Value| json!({"name": name, "valueFrom": {"resourceFieldRef": {"resource": what, "divisor": divisor}}});
        expect(
            json!({
                "resources": {"limits": {"memory": "1.5Gi", "cpu": "1500m"}, "requests": {"cpu": "250m"}},
                "env": [
                    resource("MEM", "limits.memory", Value::Null), resource("MIB", "limits.memory", json!("1Mi")),
                    resource("CPU", "limits.cpu", json!("1")), resource("MCPU", "requests.cpu", json!("1m")),
                    resource("NONE", "requests.memory", Value::Null),
                ],
            }),
            &[("CPU", "2"), ("MCPU", "250"), ("MEM", "1610612736"), ("MIB", "1536"), ("NONE", "0")],
        );
        expect(
            json!({"env": [resource("CPU", "limits.cpu", Value::Null), resource("MEM", "limits.memory", json!("1Gi"))]}),
            &[("CPU", "4"), ("MEM", "8")],
        );
    }

    #[test]
    fn keys_and_what_is_missing() {
        let secret = |key: &str, name: &str, optional: bool| json!({"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": name, "key": key, "optional": optional}}}]});
        expect(secret("TOKEN", "hidden", false), &[("X", "secret")]);
        expect(secret("NO", "hidden", true), &[]);
        expect(secret("TOKEN", "none", true), &[]);
        expect(json!({"envFrom": [{"secretRef": {"name": "none", "optional": true}}]}), &[]);
        for (container, message) in [
            (secret("TOKEN", "none", false), "secret \"none\" not found"),
            (secret("NO", "hidden", false), "couldn't find key NO in secret \"hidden\""),
            (json!({"envFrom": [{"configMapRef": {"name": "none"}}]}), "configmap \"none\" not found"),
            (secret("BINARY", "hidden", false), "invalid UTF-8 in key BINARY"),
        ] {
            let error = env_of(container).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn follows_the_rules_of_kubernetes() {
        let lookup = |name: &str| match name {
            "USER" => Some("alice"),
            "NESTED" => Some("$(USER)"),
            _ => None,
        };
        for (text, expect) in [
            ("$(USER)", "alice"),
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
