//! Settings that KubeSpawner takes in Kubernetes' own format.

use serde_json::Value;
use wasmspawner_sdk::pod::{
    ClaimSource, EmptyDirSource, EnvValue, KeyRef, Mount, NfsSource, ObjectSource, Toleration, Volume,
    VolumeSource,
};
use wasmspawner_sdk::{Section, quantity};

use crate::placement;

/// A volume: a name, and one of the sources that a policy may use.
pub(super) fn volume(entry: &mut Section<'_>) -> Volume {
    let name: String = entry.required("name");
    let sources = [
        entry.section("persistentVolumeClaim", claim).map(VolumeSource::Claim),
        entry.section("nfs", nfs).map(VolumeSource::Nfs),
        entry.section("configMap", |map| object(map, "name")).map(VolumeSource::ConfigMap),
        entry.section("secret", |secret| object(secret, "secretName")).map(VolumeSource::Secret),
        entry.section("emptyDir", empty_dir).map(VolumeSource::EmptyDir),
        entry.section("hostPath", |host| host.required("path")).map(VolumeSource::HostPath),
    ];
    let mut given = sources.into_iter().flatten();
    let (Some(source), None) = (given.next(), given.next()) else {
        let sources = "persistentVolumeClaim, nfs, configMap, secret, emptyDir or hostPath";
        entry.problem("", format!("needs one source, which here is {sources}"));
        return Volume::empty_dir(name);
    };
    Volume::new(name, source)
}

fn claim(entry: &mut Section<'_>) -> ClaimSource {
    ClaimSource {
        claim_name: entry.required("claimName"),
        read_only: entry.or_default("readOnly"),
        create: None,
    }
}

fn nfs(entry: &mut Section<'_>) -> NfsSource {
    NfsSource {
        server: entry.required("server"),
        path: entry.required("path"),
        read_only: entry.or_default("readOnly"),
    }
}

fn object(entry: &mut Section<'_>, name: &'static str) -> ObjectSource {
    ObjectSource {
        name: entry.required(name),
        optional: entry.or_default("optional"),
        items: entry.list("items", |item| (item.required("key"), item.required("path"))),
        mode: entry.optional("defaultMode"),
    }
}

fn empty_dir(entry: &mut Section<'_>) -> EmptyDirSource {
    let memory = entry.parsed("medium", |medium| match medium {
        "" => Ok(false),
        "Memory" => Ok(true),
        _ => Err("must be Memory, or absent"),
    });
    EmptyDirSource {
        size_limit_bytes: entry.parsed("sizeLimit", quantity::bytes),
        memory: memory.unwrap_or(false),
    }
}

pub(super) fn mount(entry: &mut Section<'_>) -> Mount {
    Mount {
        volume: entry.required("name"),
        path: entry.required("mountPath"),
        sub_path: entry.optional("subPath"),
        read_only: entry.or_default("readOnly"),
    }
}

pub(super) fn toleration(entry: &mut Section<'_>) -> Toleration {
    let effect = entry.parsed("effect", |text| match text {
        "" => Ok(None),
        _ => placement::taint_effect(text).map(Some),
    });
    placement::toleration_of(entry, effect.flatten(), "tolerationSeconds")
}

/// Reads a text, a number, or Kubernetes' `{valueFrom: ...}`. KubeSpawner allows the latter to contain the variable's
/// name.
pub(super) fn env_value(name: &str, value: &Value) -> Option<EnvValue> {
    match value {
        Value::String(text) => Some(EnvValue::Literal(text.clone())),
        Value::Number(number) => Some(EnvValue::Literal(number.to_string())),
        Value::Bool(flag) => Some(EnvValue::Literal(flag.to_string())),
        Value::Object(entry) => {
            let known = |key: &String| key == "name" || key == "valueFrom";
            let renamed = entry.get("name").is_some_and(|given| given != name);
            if renamed || !entry.keys().all(known) {
                return None;
            }
            value_from(entry.get("valueFrom")?)
        }
        Value::Null | Value::Array(_) => None,
    }
}

fn value_from(source: &Value) -> Option<EnvValue> {
    let source = source.as_object().filter(|source| source.len() == 1)?;
    let text = |of: &Value, key: &str| of.get(key)?.as_str().map(str::to_owned);
    let fields = |of: &Value, count: usize| of.as_object().is_some_and(|of| of.len() == count);
    if let Some(key) = source.get("secretKeyRef").filter(|key| fields(key, 2)) {
        return Some(EnvValue::SecretRef(KeyRef { name: text(key, "name")?, key: text(key, "key")? }));
    }
    let field = source.get("fieldRef").filter(|field| fields(field, 1))?;
    text(field, "fieldPath").map(EnvValue::FieldRef)
}
