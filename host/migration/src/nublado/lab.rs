//! The section `lab`.

use serde_json::{Map, Value, json};

use super::reader::Reader;
use super::shape::{self, Shape, fit, to_policy};
use super::{duration, images, storage};
use crate::becomes::plain_text;
use crate::draft::is_nothing;
use crate::values_file::below;

/// The service's limits for time limits of a policy, in seconds.
const MAX_SPAWN: u64 = 3600;
const MAX_DELETE: u64 = 600;

pub(super) fn read(reader: &mut Reader<'_>, path: &str, value: &Value) {
    for (path, key, value) in reader.entries(path, value) {
        one(reader, &path, key, value);
    }
    home(reader, value);
}

/// Sets the place of homes, if it is not `/home/USERNAME`.
fn home(reader: &mut Reader<'_>, lab: &Value) {
    let text = |key: &str| lab.get(key).and_then(Value::as_str).unwrap_or_default();
    let prefix = match text("homedirPrefix").trim_end_matches('/') {
        "" => "/home",
        prefix => prefix,
    };
    let schema = [text("homedirSchema"), text("homeDirectorySchema")].contains(&"initialThenUsername");
    let suffix = text("homedirSuffix").trim_matches('/');
    if prefix == "/home" && !schema && suffix.is_empty() {
        return;
    }
    let literal = |text: &str| text.replace('{', "{{").replace('}', "}}");
    let initial = if schema { "/{username:.1}" } else { "" };
    let suffix = if suffix.is_empty() { String::new() } else { format!("/{}", literal(suffix)) };
    reader.set_service(
        "lab.user_files.home",
        format!("{}{initial}/{{username}}{suffix}", literal(prefix)).into(),
    );
}

fn one(reader: &mut Reader<'_>, path: &str, key: &str, value: &Value) {
    let of_policy = format!("lab.{key}");
    match key {
        _ if is_nothing(value) => reader.not_needed(path, "has no value"),
        "defaultSize"
        | "activityInterval"
        | "jupyterlabConfigDir"
        | "emptyDirSource"
        | "tmpSource"
        | "homedirPrefix"
        | "homedirSchema"
        | "homeDirectorySchema"
        | "homedirSuffix"
        | "homeVolumeName" => {
            to_policy(reader, path, &of_policy, value, &Shape::Scalar);
            if key.starts_with("homedir") {
                let to = format!("policies[rubin].config.{of_policy}, and lab.user_files.home");
                reader.carried(path, &to, "");
            }
        }
        "labStartCommand" => {
            to_policy(reader, path, &of_policy, value, &Shape::List);
        }
        "sizes" => {
            to_policy(reader, path, &of_policy, value, &shape::SIZES);
        }
        "env" => env(reader, path, value),
        "extraAnnotations" => annotations(reader, path, value),
        "nodeSelector" => {
            let labels = to_policy(reader, path, &of_policy, value, &Shape::Texts);
            reader.set_service("images.nodes.selector", labels.unwrap_or_else(|| json!({})));
        }
        "tolerations" => tolerations(reader, path, value),
        "affinity" => {
            reader.grants.affinity = true;
            to_policy(reader, path, &of_policy, value, &Shape::Free);
        }
        "spawnTimeout" => time_limit(reader, path, key, value, ("spawn_seconds", MAX_SPAWN)),
        "deleteTimeout" => time_limit(reader, path, key, value, ("delete_seconds", MAX_DELETE)),
        "volumes" => storage::volumes(reader, path, value),
        "volumeMounts" => {
            to_policy(reader, path, &of_policy, value, &shape::MOUNTS);
        }
        "initContainers" => init_containers(reader, path, value),
        "standardInithome" | "standardInitcontainers" => inithome(reader, path, value),
        "secrets" => secrets(reader, path, value),
        "pullSecret" => pull_secret(reader, path, value),
        "nss" => nss(reader, path, value),
        "files" => {
            if let Some(files) = fit(reader, path, value, &Shape::Texts) {
                reader.set_service("lab.files", files);
                reader.carried(path, "lab.files", "");
            }
        }
        "runtimeMountsDir" => {
            if let Some(Value::String(folder)) = to_policy(reader, path, &of_policy, value, &Shape::Scalar) {
                let folder = folder.trim_end_matches('/');
                reader.set_service("lab.secrets_path", format!("{folder}/secrets").into());
                reader.carried(path, "lab.secrets_path, and policies[rubin].config.lab.runtimeMountsDir", "");
            }
        }
        "namespacePrefix" => {
            if let Some(prefix) = fit(reader, path, value, &Shape::Scalar) {
                let prefix = plain_text(&prefix).replace('{', "{{").replace('}', "}}");
                reader.set_service("names.namespace", format!("{prefix}-{{user_server}}").into());
                reader.carried(path, "names.namespace", "");
            }
        }
        "namespaceAnnotations" => namespace_annotations(reader, path, value),
        "application" => {
            if let Some(application) = fit(reader, path, value, &Shape::Scalar) {
                reader.set_service("lab.argo_cd.instance", application);
                reader.carried(path, "lab.argo_cd.instance", "");
            }
        }
        "reconcileInterval" => images::span(reader, path, value, "limits.reconcile_every"),
        _ => switch(reader, path, key, value),
    }
}

/// A switch of something that labs have or do.
fn switch(reader: &mut Reader<'_>, path: &str, key: &str, value: &Value) {
    let shown = [
        "enableLandingPage",
        "enableCstLandingPage",
        "enableQueriesMenu",
        "enableRubinQueryMenu",
        "enableTutorialsMenu",
        "fileBrowserRoot",
    ];
    match key {
        _ if key != "fsGroupPrimary" && !shown.contains(&key) => reader.unknown(path),
        "fsGroupPrimary" if value.is_boolean() => {
            let group = if value == &Value::Bool(true) { "user" } else { "none" };
            reader.set_service("lab.fs_group.group", group.into());
            reader.carried(path, "lab.fs_group.group", "");
        }
        _ if value == &Value::Bool(false) => reader.not_needed(path, "is off"),
        "fileBrowserRoot" if value != "home" && value != "root" => reader.other_form(path),
        _ if key != "fileBrowserRoot" && value != &Value::Bool(true) => reader.other_form(path),
        _ => {
            to_policy(reader, path, &format!("lab.{key}"), value, &Shape::Scalar);
        }
    }
}

fn env(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let Some(Value::Object(variables)) = fit(reader, path, value, &Shape::Texts) else { return };
    for (name, value) in variables {
        reader.set_env(&name, value);
    }
    reader.carried(path, "policies[rubin].config.lab.env", "");
}

fn annotations(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let carried = to_policy(reader, path, "lab.extraAnnotations", value, &Shape::Texts);
    for key in carried.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if let Some((prefix, _)) = key.split_once('/') {
            reader.grants.metadata.insert(format!("{prefix}/"));
        }
    }
}

fn tolerations(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let Some(carried) = to_policy(reader, path, "lab.tolerations", value, &shape::TOLERATIONS) else {
        return;
    };
    let tolerations = carried.as_array().into_iter().flatten();
    let keys: Vec<_> = tolerations.filter_map(|toleration| toleration.get("key").cloned()).collect();
    reader.set_service("images.nodes.tolerated_taints", keys.into());
}

/// Carries a time limit over, and raises the service's own limit for it.
fn time_limit(reader: &mut Reader<'_>, path: &str, key: &str, value: &Value, (of_service, max): (&str, u64)) {
    let Some(seconds) = duration::seconds(value) else { return reader.other_form(path) };
    to_policy(reader, path, &format!("lab.{key}"), value, &Shape::Scalar);
    if seconds > max {
        reader.set_service(&format!("lab.max_time_limits.{of_service}"), seconds.into());
    }
}

fn init_containers(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let Some(mut carried) = to_policy(reader, path, "lab.initContainers", value, &shape::INIT_CONTAINERS)
    else {
        return;
    };
    let mut policies = Vec::new();
    for (at, container) in carried.as_array_mut().into_iter().flatten().enumerate() {
        if container.get("privileged") == Some(&Value::Bool(true)) {
            reader.grants.privileged_init = true;
        }
        let policy = container.get_mut("image").and_then(Value::as_object_mut);
        if let Some(policy) =
            policy.and_then(|image| image.remove("pullPolicy")).filter(|it| it != "IfNotPresent")
        {
            policies.push((at, policy));
        }
    }
    for (at, policy) in policies {
        reader.open(
            &format!("{path}[{at}].image.pullPolicy"),
            &format!("was {policy} for this container alone"),
            "`lab.image_pull_policy` of the service is for all containers of labs",
        );
    }
    reader.set_policy("lab.initContainers", carried);
}

fn inithome(reader: &mut Reader<'_>, path: &str, value: &Value) {
    match value {
        Value::Bool(false) => reader.not_needed(path, "is off"),
        Value::Bool(true) => {
            reader.grants.privileged_init = true;
            reader.set_policy("lab.standardInithome", true.into());
            reader.carried(path, "policies[rubin].config.lab.standardInithome", "");
        }
        _ => reader.other_form(path),
    }
}

/// Copies all secrets to labs, and gives those with a variable or a path of their own to the policy, too.
fn secrets(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let Some(Value::Array(secrets)) = fit(reader, path, value, &shape::SECRETS) else { return };
    for (at, secret) in secrets.iter().enumerate() {
        let (Some(name), Some(key)) = (secret.get("secretName"), secret.get("secretKey")) else {
            reader.other_form(&format!("{path}[{at}]"));
            continue;
        };
        add_secret(reader, json!({"name": name, "key": key}));
    }
    let used = |secret: &Value| ["env", "path"].iter().any(|key| secret.get(key).is_some());
    let of_policy: Vec<_> = secrets.into_iter().filter(used).collect();
    if !of_policy.is_empty() {
        reader.set_policy("lab.secrets", of_policy.into());
    }
    reader.carried(path, "lab.secrets", "The Secrets have to be in the namespace of this service");
}

fn pull_secret(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let Some(Value::String(name)) = fit(reader, path, value, &Shape::Scalar) else {
        return reader.other_form(path);
    };
    add_secret(reader, json!({"name": name, "key": ".dockerconfigjson", "pull_secret": true}));
    // The controller reads the tags of images with it, too.
    reader.set_chart("secrets.registryLogins.existingSecret", name.into());
    reader.carried(
        path,
        "lab.secrets, and secrets.registryLogins of the chart's values",
        "The Secret has to be in the namespace of this service",
    );
}

fn add_secret(reader: &mut Reader<'_>, secret: Value) {
    match &mut reader.service["lab"]["secrets"] {
        Value::Array(secrets) => secrets.push(secret),
        none => *none = json!([secret]),
    }
}

fn nss(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let Some(Value::Object(files)) = fit(reader, path, value, &shape::NSS) else { return };
    for (key, text) in files {
        let to = if key == "basePasswd" { "lab.user_files.passwd" } else { "lab.user_files.group" };
        let mut lines = plain_text(&text);
        if !lines.is_empty() && !lines.ends_with('\n') {
            lines.push('\n');
        }
        reader.set_service(to, lines.into());
        reader.carried(&below(path, &key), to, "");
    }
}

fn namespace_annotations(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let Some(Value::Object(annotations)) = fit(reader, path, value, &Shape::Texts) else { return };
    for (key, text) in annotations {
        let path = below(path, &key);
        match template(&plain_text(&text)) {
            Some(text) => {
                reader.service["lab"]["annotations"][&key] = text.into();
                reader.carried(
                    &path,
                    "lab.annotations",
                    "All objects of a lab have it, and not only the namespace",
                );
            }
            None => reader.open(
                &path,
                "is a template of Jinja with other fields than `uid` and `gid`",
                "Write it to `lab.annotations` as a template of this service",
            ),
        }
    }
}

/// Converts a template of Jinja, such as `{{ uid }}`.
fn template(text: &str) -> Option<String> {
    let literal = |text: &str| text.replace('{', "{{").replace('}', "}}");
    let (mut converted, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let (field, after) = after.split_once("}}")?;
        let field @ ("uid" | "gid") = field.trim() else { return None };
        converted.extend([literal(before).as_str(), "{", field, "}"]);
        rest = after;
    }
    if rest.contains("{%") || converted.contains("{%") {
        return None;
    }
    Some(converted + &literal(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_of_jinja_is_converted() {
        for (text, expected) in [
            ("a{b}", Some("a{{b}}")),
            ("{{ uid }}:{{gid}}", Some("{uid}:{gid}")),
            ("{{ name }}", None),
            ("{{ uid", None),
            ("{% if uid %}x{% endif %}", None),
        ] {
            assert_eq!(template(text).as_deref(), expected, "{text}");
        }
    }
}
