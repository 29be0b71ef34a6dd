//! Settings that KubeSpawner takes in Kubernetes' own format.

use serde_json::Value;
use wasmspawner_sdk::pod::{
    ClaimReclaim, ClaimSource, ClaimTemplate, EmptyDirSource, EnvValue, EnvVar, InitContainer, InitRun,
    KeyRef, Mount, NfsSource, ObjectSource, Resources, SecurityProfile, Toleration, Volume, VolumeSource,
};
use wasmspawner_sdk::{Section, quantity};

use crate::{placement, storage};

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

/// How the claim of a lab is made that has none; `None` if none is made.
pub(super) fn claim_template(entry: &mut Section<'_>) -> Option<ClaimTemplate> {
    let is_made: bool = entry.or_default("storage_pvc_ensure");
    let is_deleted: Option<bool> = entry.optional("delete_pvc");
    let template = ClaimTemplate {
        storage_bytes: entry.parsed("storage_capacity", quantity::bytes).unwrap_or_default(),
        storage_class: entry.optional("storage_class").filter(|class: &String| !class.is_empty()),
        access_modes: storage::access_modes(entry, "storage_access_modes"),
        labels: storage::templates(entry, "storage_extra_labels"),
        annotations: storage::templates(entry, "storage_extra_annotations"),
        selector: entry
            .section("storage_selector", |selector| storage::pairs(selector, "matchLabels"))
            .unwrap_or_default(),
        // KubeSpawner's own default.
        reclaim: if is_deleted.unwrap_or(true) { ClaimReclaim::Delete } else { ClaimReclaim::Retain },
    };
    if is_made && template.storage_bytes == 0 {
        entry.problem("storage_capacity", "is missing; a claim needs a size, such as 10Gi");
    }
    is_made.then_some(template)
}

/// A container that ends before the lab starts. The service decides its security context; here only the choice of a
/// profile is made from it.
pub(super) fn init_container(entry: &mut Section<'_>) -> InitContainer {
    // The service's `lab.image_pull_policy` holds for all containers, and a port of a container opens nothing.
    for not_needed in ["imagePullPolicy", "ports", "terminationMessagePath", "terminationMessagePolicy"] {
        entry.optional::<Value>(not_needed);
    }
    InitContainer {
        name: entry.required("name"),
        image: entry.required("image"),
        command: entry.or_default("command"),
        args: entry.or_default("args"),
        env: entry.list("env", variable),
        mounts: entry.list("volumeMounts", mount),
        resources: entry.section("resources", resources),
        profile: entry.section("securityContext", security_profile).unwrap_or(SecurityProfile::Restricted),
        run: InitRun::Always,
    }
}

fn variable(entry: &mut Section<'_>) -> EnvVar {
    let name: String = entry.required("name");
    let from: Option<Value> = entry.optional("valueFrom");
    let value = match from {
        Some(source) => value_from(&source),
        None => Some(EnvValue::Literal(entry.or_default("value"))),
    };
    if value.is_none() {
        entry
            .problem("valueFrom", "must have a secretKeyRef with name and key, or a fieldRef with fieldPath");
    }
    EnvVar { name, value: value.unwrap_or_else(|| EnvValue::Literal(String::new())) }
}

fn resources(entry: &mut Section<'_>) -> Resources {
    let mut read = |key| {
        entry.section(key, |amounts| {
            (amounts.parsed("cpu", quantity::cpu_millis), amounts.parsed("memory", quantity::bytes))
        })
    };
    let (cpu_limit_millis, memory_limit_bytes) = read("limits").unwrap_or_default();
    let (cpu_request_millis, memory_request_bytes) = read("requests").unwrap_or_default();
    Resources {
        cpu_limit_millis,
        cpu_request_millis,
        memory_limit_bytes,
        memory_request_bytes,
        ..Resources::default()
    }
}

/// Reads a security context. A container runs as root if it says so, and otherwise as the lab does, with the lab's user.
fn security_profile(entry: &mut Section<'_>) -> SecurityProfile {
    let privileged: bool = entry.or_default("privileged");
    let user: Option<u64> = entry.optional("runAsUser");
    let group: Option<u64> = entry.optional("runAsGroup");
    let added: Option<Value> = entry.optional("capabilities");
    for decided in ["allowPrivilegeEscalation", "runAsNonRoot", "readOnlyRootFilesystem", "seccompProfile"] {
        entry.optional::<Value>(decided);
    }
    if privileged {
        return SecurityProfile::Privileged;
    }
    if user == Some(0) {
        return SecurityProfile::Baseline;
    }
    if user.is_some() || group.is_some() {
        entry.warning("runAsUser", "the container runs as the lab's own user and group");
    }
    let adds = added.as_ref().and_then(|given| given.get("add")).is_some();
    if adds {
        entry.warning("capabilities", "are not added; only a container with `privileged: true` has more");
    }
    SecurityProfile::Restricted
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
