//! `envFrom`, then `env`, later names winning.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{Container, EnvFromSource, EnvVar, EnvVarSource, Pod},
};
use thiserror::Error;

use super::{PodFacts, References, expand, pod_field, resource_field};

/// Why a container cannot be created yet: shown as `CreateContainerConfigError`, and tried again.
///
/// The texts are those of a kubelet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ConfigError {
    #[error("{kind} {name:?} not found")]
    NotFound { kind: &'static str, name: String },
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    KeyNotFound { kind: &'static str, namespace: String, name: String, key: String },
    #[error("unsupported fieldPath: {path}")]
    UnsupportedField { path: String },
    #[error("invalid UTF-8 in key {key} of Secret {name}: an environment variable must be text")]
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
        env.extend(from_source(source, references)?);
    }
    for variable in container.env.iter().flatten() {
        if let Some(value) = value_of(pod, container, variable, &env, references, facts)? {
            env.insert(variable.name.clone(), value);
        }
    }
    Ok(env)
}

fn from_source(
    source: &EnvFromSource,
    references: &References,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut values = BTreeMap::new();
    if let Some(wanted) = &source.config_map_ref {
        match references.config_maps.get(&wanted.name) {
            Some(map) => values.extend(map.data.clone().unwrap_or_default()),
            None if wanted.optional == Some(true) => {}
            None => return Err(ConfigError::NotFound { kind: "configmap", name: wanted.name.clone() }),
        }
    }
    if let Some(wanted) = &source.secret_ref {
        match references.secrets.get(&wanted.name) {
            Some(secret) => {
                for (key, ByteString(bytes)) in secret.data.iter().flatten() {
                    values.insert(key.clone(), text(&wanted.name, key, bytes)?);
                }
            }
            None if wanted.optional == Some(true) => {}
            None => return Err(ConfigError::NotFound { kind: "secret", name: wanted.name.clone() }),
        }
    }
    let prefix = source.prefix.as_deref().unwrap_or_default();
    Ok(values.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value)).collect())
}

fn value_of(
    pod: &Pod,
    container: &Container,
    variable: &EnvVar,
    known: &BTreeMap<String, String>,
    references: &References,
    facts: &PodFacts,
) -> Result<Option<String>, ConfigError> {
    match &variable.value_from {
        None => {
            let value = variable.value.as_deref().unwrap_or_default();
            Ok(Some(expand(value, |name| known.get(name).map(String::as_str))))
        }
        Some(source) => from_key(pod, container, source, references, facts),
    }
}

fn from_key(
    pod: &Pod,
    container: &Container,
    source: &EnvVarSource,
    references: &References,
    facts: &PodFacts,
) -> Result<Option<String>, ConfigError> {
    let namespace = || pod.metadata.namespace.clone().unwrap_or_default();
    if let Some(field) = &source.field_ref {
        return pod_field(pod, facts, &field.field_path).map(Some);
    }
    if let (Some(field), Some(spec)) = (&source.resource_field_ref, &pod.spec) {
        return resource_field(spec, facts, &container.name, field).map(Some);
    }
    if let Some(wanted) = &source.config_map_key_ref {
        let map = references.config_maps.get(&wanted.name);
        return match map.and_then(|map| map.data.as_ref()?.get(&wanted.key)) {
            Some(value) => Ok(Some(value.clone())),
            None if wanted.optional == Some(true) => Ok(None),
            None if map.is_none() => {
                Err(ConfigError::NotFound { kind: "configmap", name: wanted.name.clone() })
            }
            None => Err(ConfigError::KeyNotFound {
                kind: "ConfigMap",
                namespace: namespace(),
                name: wanted.name.clone(),
                key: wanted.key.clone(),
            }),
        };
    }
    if let Some(wanted) = &source.secret_key_ref {
        let secret = references.secrets.get(&wanted.name);
        return match secret.and_then(|secret| secret.data.as_ref()?.get(&wanted.key)) {
            Some(ByteString(bytes)) => text(&wanted.name, &wanted.key, bytes).map(Some),
            None if wanted.optional == Some(true) => Ok(None),
            None if secret.is_none() => {
                Err(ConfigError::NotFound { kind: "secret", name: wanted.name.clone() })
            }
            None => Err(ConfigError::KeyNotFound {
                kind: "Secret",
                namespace: namespace(),
                name: wanted.name.clone(),
                key: wanted.key.clone(),
            }),
        };
    }
    Ok(None)
}

fn text(name: &str, key: &str, bytes: &[u8]) -> Result<String, ConfigError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| ConfigError::NotText { name: name.to_owned(), key: key.to_owned() })
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
        let map = json!({"data": {"A": "from-map", "B": "b"}});
        let secret = json!({"data": {"TOKEN": "c2VjcmV0", "BINARY": "/w=="}});
        References {
            config_maps: [("map".to_owned(), serde_json::from_value(map).unwrap())].into(),
            secrets: [("hidden".to_owned(), serde_json::from_value(secret).unwrap())].into(),
        }
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
        let message =
            |result: Result<_, ConfigError>| result.map(|_: BTreeMap<_, _>| ()).unwrap_err().to_string();
        assert_eq!(message(env_of(secret("TOKEN", "none", false))), "secret \"none\" not found");
        assert_eq!(
            message(env_of(secret("NO", "hidden", false))),
            "couldn't find key NO in Secret lab/hidden"
        );
        assert_eq!(
            message(env_of(json!({"envFrom": [{"configMapRef": {"name": "none"}}]}))),
            "configmap \"none\" not found"
        );
        expect(json!({"envFrom": [{"secretRef": {"name": "none", "optional": true}}]}), &[]);
        assert!(message(env_of(secret("BINARY", "hidden", false))).contains("BINARY of Secret hidden"));
    }
}
