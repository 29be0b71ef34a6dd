//! KubeSpawner's settings, and what becomes of each.

use serde_json::{Map, Value, json};

use crate::becomes::{Becomes, plain_text};
use crate::draft::{Draft, is_nothing};
use crate::identity;
use crate::values_file::below;
use wasmspawner_core::values::credential::{has_password, is_named_as_credential};

use Becomes::{Converted, NotNeeded, Open, Service, Setting};

/// The place of KubeSpawner's settings in the configuration.
const PLACE: &str = "policies[0].config.kubespawner";

const FORM: Becomes = Open(
    "replaced KubeSpawner's form by HTML of your own",
    "The form here is made of `profile_list` and `options` of the policy; a policy of your own with the grant `raw-html` may \
     answer HTML",
);
const HOOK: Becomes = Open(
    "ran code of your own around the start of a lab",
    "Write what it did to `kubespawner` of the policy, or write a policy of your own (`wasmspawner policy new`)",
);
const SECURITY: Becomes = Open(
    "set the security context of labs",
    "`lab.security` of this service says which restrictions are lifted for all labs; labs never run as root",
);
const NAMESPACE: Becomes = Open(
    "gave users namespaces of their own",
    "Set `names.namespace` and `kubernetes.namespaces` of this service; claims have to be where labs are",
);
const CONNECTION: &str = "is about KubeSpawner's own requests to Kubernetes";

/// The settings by KubeSpawner's names.
const SETTINGS: &[(&str, Becomes)] = &[
    ("image", Setting("image")),
    ("cpu_limit", Setting("cpu_limit")),
    ("cpu_guarantee", Setting("cpu_guarantee")),
    ("mem_limit", Setting("mem_limit")),
    ("mem_guarantee", Setting("mem_guarantee")),
    ("extra_resource_limits", Setting("extra_resource_limits")),
    ("extra_resource_guarantees", Setting("extra_resource_guarantees")),
    ("environment", Setting("environment")),
    ("default_url", Setting("default_url")),
    ("notebook_dir", Setting("notebook_dir")),
    ("extra_labels", Setting("extra_labels")),
    ("extra_annotations", Setting("extra_annotations")),
    ("node_selector", Setting("node_selector")),
    ("tolerations", Setting("tolerations")),
    ("volumes", Setting("volumes")),
    ("volume_mounts", Setting("volume_mounts")),
    ("init_containers", Setting("init_containers")),
    ("image_pull_policy", Setting("image_pull_policy")),
    ("lifecycle_hooks", Setting("lifecycle_hooks")),
    ("extra_containers", Setting("extra_containers")),
    ("extra_container_config", Setting("extra_container_config")),
    ("extra_pod_config", Setting("extra_pod_config")),
    ("scheduler_name", Setting("scheduler_name")),
    ("priority_class_name", Setting("priority_class_name")),
    ("node_affinity_preferred", Setting("node_affinity_preferred")),
    ("node_affinity_required", Setting("node_affinity_required")),
    ("pod_affinity_preferred", Setting("pod_affinity_preferred")),
    ("pod_affinity_required", Setting("pod_affinity_required")),
    ("pod_anti_affinity_preferred", Setting("pod_anti_affinity_preferred")),
    ("pod_anti_affinity_required", Setting("pod_anti_affinity_required")),
    ("cmd", Setting("cmd")),
    ("args", Setting("args")),
    ("working_dir", Setting("working_dir")),
    ("start_timeout", Setting("start_timeout")),
    ("port", Setting("port")),
    ("storage_pvc_ensure", Setting("storage_pvc_ensure")),
    ("storage_capacity", Setting("storage_capacity")),
    ("storage_class", Setting("storage_class")),
    ("storage_access_modes", Setting("storage_access_modes")),
    ("storage_selector", Setting("storage_selector")),
    ("storage_extra_labels", Setting("storage_extra_labels")),
    ("storage_extra_annotations", Setting("storage_extra_annotations")),
    ("delete_pvc", Setting("delete_pvc")),
    ("profile_list", Becomes::Profiles),
    ("uid", Converted(identity::uid)),
    ("gid", Converted(identity::gid)),
    ("fs_gid", Converted(identity::fs_gid)),
    ("supplemental_gids", Converted(identity::supplemental_gids)),
    ("service_account", Setting("service_account")),
    ("automount_service_account_token", Service("lab.security.service_account_token")),
    ("allow_privilege_escalation", Converted(privilege_escalation)),
    ("privileged", SECURITY),
    ("container_security_context", SECURITY),
    ("pod_security_context", SECURITY),
    ("image_pull_secrets", Converted(pull_secrets)),
    ("pod_name_template", Converted(pod_name)),
    ("pvc_name_template", Service("names.pvc")),
    ("slug_scheme", Service("names.scheme")),
    ("remember_pvc_name", Service("names.remember_pvc_name")),
    ("common_labels", Service("lab.labels")),
    (
        "handle_legacy_names",
        NotNeeded(
            "claims with names from before release 7 are found as long as `names.remember_pvc_name` is true",
        ),
    ),
    ("namespace", NAMESPACE),
    ("enable_user_namespaces", NAMESPACE),
    ("user_namespace_template", NAMESPACE),
    ("user_namespace_labels", NAMESPACE),
    ("user_namespace_annotations", NAMESPACE),
    ("profile_form_template", FORM),
    ("additional_profile_form_template_paths", FORM),
    ("options_form", FORM),
    ("options_from_form", FORM),
    ("modify_pod_hook", HOOK),
    ("after_pod_created_hook", HOOK),
    ("pre_spawn_hook", HOOK),
    ("post_stop_hook", HOOK),
    ("auth_state_hook", HOOK),
    ("delete_grace_period", Service("lab.termination_grace_period_seconds")),
    ("http_timeout", NotNeeded("this service waits for the lab's probe within the time for the start")),
    ("poll_interval", NotNeeded("this service is told of changes")),
    ("poll_jitter", NotNeeded("this service is told of changes")),
    ("events_enabled", NotNeeded("events of the pod are always shown")),
    ("delete_stopped_pods", NotNeeded("pods of stopped labs are always deleted")),
    (
        "pod_connect_ip",
        NotNeeded("`lab.service.lab_url` says how labs are reached, if not at the pod's address"),
    ),
    ("enable_services", NotNeeded("`lab.service` makes a Service for each lab")),
    ("services_enabled", NotNeeded("`lab.service` makes a Service for each lab")),
    ("ip", NotNeeded("labs listen on all addresses of their pod")),
    (
        "component_label",
        NotNeeded("labs have labels of this service, by which everything of theirs is found"),
    ),
    ("debug", NotNeeded("a variable of `environment` makes a lab say more")),
    ("consecutive_failure_limit", NotNeeded("labs that fail say nothing about the Hub any more")),
    ("k8s_api_request_timeout", NotNeeded(CONNECTION)),
    ("k8s_api_request_retry_timeout", NotNeeded(CONNECTION)),
    ("k8s_api_threadpool_workers", NotNeeded(CONNECTION)),
    ("k8s_api_host", NotNeeded(CONNECTION)),
    ("k8s_api_ssl_ca_cert", NotNeeded(CONNECTION)),
    ("k8s_api_verify_ssl", NotNeeded(CONNECTION)),
];

/// What becomes of a setting; none if it is not known.
pub(crate) fn of(name: &str) -> Option<Becomes> {
    SETTINGS.iter().find(|(known, _)| *known == name).map(|(_, becomes)| *becomes)
}

/// Settings that are lists; sites write them as maps, too.
const LISTS: [&str; 11] = [
    "extra_containers",
    "init_containers",
    "node_affinity_preferred",
    "node_affinity_required",
    "pod_affinity_preferred",
    "pod_affinity_required",
    "pod_anti_affinity_preferred",
    "pod_anti_affinity_required",
    "tolerations",
    "volume_mounts",
    "volumes",
];

/// Settings of a lab's claim, which are for the whole site.
const CLAIM: [&str; 8] = [
    "delete_pvc",
    "storage_access_modes",
    "storage_capacity",
    "storage_class",
    "storage_extra_annotations",
    "storage_extra_labels",
    "storage_pvc_ensure",
    "storage_selector",
];

/// Fields of a pod or a container that the security baseline of this service decides.
const OF_THE_BASELINE: [&str; 9] = [
    "automountServiceAccountToken",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
];

/// Sets one of KubeSpawner's settings for every lab.
pub(crate) fn put(draft: &mut Draft<'_>, path: &str, setting: &str, value: &Value) {
    if is_nothing(value) {
        return draft.not_needed(path, "has no value");
    }
    if LISTS.contains(&setting) && !value.is_array() && !value.is_object() {
        return draft.wrong_form(path);
    }
    draft.carried(path, &format!("{PLACE}.{setting}"));
    let mut value = cleaned(draft, path, setting, value);
    if let (true, Value::Object(entries)) = (LISTS.contains(&setting), &value) {
        value = entries.values().cloned().collect();
    }
    draft.set(setting, value);
}

/// Converts a `kubespawner_override`.
pub(crate) fn overrides(draft: &mut Draft<'_>, path: &str, value: &Value) -> Value {
    expect_map(draft, path, value);
    let (mut kept, left_out) = (Map::new(), draft.left_out.len());
    for (name, value) in volumes_first(value) {
        let path = below(path, name);
        match of(name) {
            Some(Setting(setting)) if !CLAIM.contains(&setting) => {
                let value = cleaned(draft, &path, setting, value);
                kept.insert(name.clone(), value);
            }
            _ if name == "default" => draft.not_needed(
                &path,
                "had no effect, because it stands in an override; the first choice was the default",
            ),
            Some(Open(did, ways)) => draft.open(&path, did, ways),
            Some(NotNeeded(why)) => draft.not_needed(&path, why),
            Some(_) => draft.open(
                &path,
                "was different for labs with this profile",
                "It is the same for all labs here: see where the setting of the whole site went",
            ),
            None => draft.open(
                &path,
                "is a setting of the spawner that this program does not know",
                "KubeSpawner ignores unknown names in an override",
            ),
        }
    }
    draft.left_out.truncate(left_out);
    Value::Object(kept)
}

/// The settings of an object, with the volumes before what mounts them.
pub(crate) fn volumes_first(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let all = || value.as_object().into_iter().flatten();
    all().filter(|(name, _)| *name == "volumes").chain(all().filter(|(name, _)| *name != "volumes"))
}

/// Returns a setting without the parts that cannot be carried over, which it reports.
pub(crate) fn cleaned(draft: &mut Draft<'_>, path: &str, setting: &str, value: &Value) -> Value {
    match setting {
        "environment" => environment(draft, path, value),
        "extra_resource_limits" | "extra_resource_guarantees" => resources(draft, path, value),
        "extra_pod_config" | "extra_container_config" => without_baseline(draft, path, value),
        "volumes" => entries(draft, path, value, volume),
        "volume_mounts" => entries(draft, path, value, mount),
        "init_containers" => {
            entries(draft, path, value, |draft, path, item| Some(init_container(draft, path, item)))
        }
        "extra_containers" => {
            entries(draft, path, value, |draft, path, item| Some(sidecar(draft, path, item)))
        }
        "service_account" if plain_text(value).contains('{') => {
            draft.open(
                path,
                "names an account by a template, so each user had another one",
                "Grants name accounts one by one: list them by group in `service_accounts` of the policy, or by profile",
            );
            Value::Null
        }
        "start_timeout" => {
            /// The longest time for a start that this service allows unless it is told to allow more.
            const USUAL: u64 = 3600;
            if let Some(seconds) = value.as_u64().filter(|seconds| *seconds > USUAL) {
                draft.set_service("lab.max_time_limits.spawn_seconds", seconds.into());
            }
            value.clone()
        }
        _ => value.clone(),
    }
}

/// Converts each entry of a list or of a map; those for which there is no counterpart are left out.
fn entries(
    draft: &mut Draft<'_>,
    path: &str,
    value: &Value,
    convert: fn(&mut Draft<'_>, &str, &Value) -> Option<Value>,
) -> Value {
    let mut convert = |path: &str, item: &Value| {
        if !item.is_object() {
            draft.wrong_form(path);
            return None;
        }
        convert(draft, path, item)
    };
    match value {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.filter_map(|(at, item)| convert(&format!("{path}[{at}]"), item)).collect()
        }
        Value::Object(items) => {
            let items = items.iter();
            let converted =
                items.filter_map(|(key, item)| Some((key.clone(), convert(&below(path, key), item)?)));
            Value::Object(converted.collect())
        }
        Value::Null => Value::Null,
        _ => {
            draft.wrong_form(path);
            Value::Null
        }
    }
}

fn environment(draft: &mut Draft<'_>, path: &str, value: &Value) -> Value {
    expect_map(draft, path, value);
    let mut kept = Map::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        if is_literal_credential(name, value) {
            draft.open(&below(path, name), CREDENTIAL.0, CREDENTIAL.1);
        } else if variable(value) {
            kept.insert(name.clone(), value.clone());
        } else {
            draft.open(
                &below(path, name),
                "is a variable with a value from a place that a policy cannot name",
                "Write its value, or take it from a Secret (`secretKeyRef` with `name` and `key`) or a field of the pod",
            );
        }
    }
    Value::Object(kept)
}

/// What a literal credential did, and what is to be done with it: the configuration becomes a ConfigMap.
const CREDENTIAL: (&str, &str) = (
    "is a credential, by its name or its value, and the configuration is no place for it: it becomes a ConfigMap",
    "Put it into a Secret in the namespace of labs, and write `valueFrom: {secretKeyRef: {name: …, key: …}}` in its place",
);

/// True for a text that is probably a credential.
fn is_literal_credential(name: &str, value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| !text.is_empty() && (is_named_as_credential(name) || has_password(text)))
}

/// Returns the variables of a container without those that are credentials, which it reports.
fn without_credentials(draft: &mut Draft<'_>, path: &str, container: &mut Value) {
    let Some(variables) = container.get_mut("env").and_then(Value::as_array_mut) else { return };
    variables.retain(|variable| {
        let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_credential = is_literal_credential(name, &variable["value"]);
        if is_credential {
            draft.open(&below(&below(path, "env"), name), CREDENTIAL.0, CREDENTIAL.1);
        }
        !is_credential
    });
}

/// True for a value of a variable that a policy takes.
fn variable(value: &Value) -> bool {
    let Some(entry) = value.as_object() else { return !value.is_array() };
    let source = entry.get("valueFrom").and_then(Value::as_object).filter(|source| source.len() == 1);
    let Some((kind, of)) = source.and_then(|source| source.iter().next()) else { return false };
    let has = |keys: &[&str]| {
        let texts = keys.iter().all(|key| of.get(key).is_some_and(Value::is_string));
        texts && of.as_object().is_some_and(|of| of.len() == keys.len())
    };
    entry.keys().all(|key| key == "valueFrom" || key == "name")
        && match kind.as_str() {
            "secretKeyRef" => has(&["key", "name"]),
            "fieldRef" => has(&["fieldPath"]),
            _ => false,
        }
}

/// Reports what is no map of settings.
fn expect_map(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if !value.is_object() && !value.is_null() {
        draft.wrong_form(path);
    }
}

fn resources(draft: &mut Draft<'_>, path: &str, value: &Value) -> Value {
    expect_map(draft, path, value);
    let mut kept = Map::new();
    for (name, amount) in value.as_object().into_iter().flatten() {
        let whole =
            amount.is_null() || amount.as_u64().is_some() || plain_text(amount).parse::<u64>().is_ok();
        if name.contains('/') && whole {
            kept.insert(name.clone(), amount.clone());
        } else {
            draft.open(
                &below(path, name),
                "is a resource that is not counted in pieces, such as `ephemeral-storage`",
                "A policy of your own with the grant `pod-patch: [spec.containers.resources]` can set it",
            );
        }
    }
    Value::Object(kept)
}

fn without_baseline(draft: &mut Draft<'_>, path: &str, value: &Value) -> Value {
    expect_map(draft, path, value);
    let mut kept = Map::new();
    for (name, field) in value.as_object().into_iter().flatten() {
        let decided = OF_THE_BASELINE.iter().find(|decided| same_name(decided, name));
        if decided.is_some() {
            draft.open(
                &below(path, name),
                "is a field of the pod that this service decides itself",
                "`lab.security` says which restrictions are lifted for all labs",
            );
        } else {
            kept.insert(name.clone(), field.clone());
        }
    }
    Value::Object(kept)
}

/// True for `hostNetwork` and `host_network`.
fn same_name(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    plain(one) == plain(other)
}

/// The name of a volume: names are no templates here.
fn volume_name(draft: &Draft<'_>, name: &str) -> String {
    match &draft.renamed {
        Some((template, renamed)) if template == name => renamed.clone(),
        _ if name.contains(['{', '}']) => {
            let letters =
                |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' };
            name.chars().map(letters).collect::<String>().trim_matches('-').to_owned()
        }
        _ => name.to_owned(),
    }
}

fn with_volume_name(draft: &Draft<'_>, value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(name) = value.get("name").and_then(Value::as_str) {
        value["name"] = volume_name(draft, name).into();
    }
    value
}

fn volume(draft: &mut Draft<'_>, path: &str, value: &Value) -> Option<Value> {
    const KINDS: [&str; 6] = ["configMap", "emptyDir", "hostPath", "nfs", "persistentVolumeClaim", "secret"];
    let kinds: Vec<_> =
        value.as_object().into_iter().flat_map(Map::keys).filter(|key| *key != "name").collect();
    let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
    if let [kind] = kinds.as_slice()
        && KINDS.contains(&kind.as_str())
    {
        let mut volume = with_volume_name(draft, value);
        if *kind == "hostPath" {
            let place = &value["hostPath"]["path"];
            volume["hostPath"] = json!({"path": place});
        }
        return Some(volume);
    }
    draft.open(
        path,
        &format!("is the volume `{name}` of a kind that a policy cannot give, or of none"),
        &format!("A policy gives {}; its mounts are left out, too", KINDS.join(", ")),
    );
    draft.left_out.push(volume_name(draft, name));
    None
}

fn mount(draft: &mut Draft<'_>, path: &str, value: &Value) -> Option<Value> {
    let mut mount = with_volume_name(draft, value);
    if mount
        .get("name")
        .and_then(Value::as_str)
        .is_some_and(|name| draft.left_out.iter().any(|gone| gone == name))
    {
        draft.open(path, "mounts a volume that is left out", "See there");
        return None;
    }
    if mount.get("subPathExpr").is_some() {
        draft.open(
            path,
            "mounts the folder of a volume that `subPathExpr` names; without it each lab would have the whole volume",
            "Write the folder as `subPath`, with a template such as `{username}`",
        );
        return None;
    }
    without_others(draft, path, &mut mount, &["name", "mountPath", "subPath", "readOnly"]);
    Some(mount)
}

/// Removes the keys of an object that are not among `known`, and reports them.
fn without_others(draft: &mut Draft<'_>, path: &str, value: &mut Value, known: &[&str]) {
    let Some(entries) = value.as_object_mut() else { return };
    let others: Vec<String> = entries.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect();
    for key in others {
        entries.remove(&key);
        draft.open(&below(path, &key), "is a field that a policy cannot set here", "It has no counterpart");
    }
}

fn init_container(draft: &mut Draft<'_>, path: &str, value: &Value) -> Value {
    let mut init = value.clone();
    let known = [
        "args",
        "command",
        "env",
        "image",
        "imagePullPolicy",
        "name",
        "ports",
        "resources",
        "securityContext",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "volumeMounts",
    ];
    without_others(draft, path, &mut init, &known);
    without_credentials(draft, path, &mut init);
    if let Some(mounts) = value.get("volumeMounts") {
        init["volumeMounts"] = entries(draft, &below(path, "volumeMounts"), mounts, mount);
    }
    let context = value.get("securityContext").cloned().unwrap_or_default();
    let user = context.get("runAsUser").and_then(Value::as_u64);
    let privileged = context.get("privileged") == Some(&Value::Bool(true));
    let (wants_root, wants_other) = (user == Some(0), user.is_some_and(|user| user != 0));
    if privileged {
        draft.open(
            path,
            "runs privileged, which is root on the node",
            "It is carried over with the grant `privileged-init`; remove both if it only blocked the cloud's metadata",
        );
    } else if context.get("capabilities").is_some_and(|given| given.get("add").is_some()) {
        draft.open(
            &below(path, "securityContext.capabilities"),
            "gave the container further capabilities",
            "Containers have the runtime's own if they run as root, and none otherwise; `privileged: true` gives all",
        );
    } else if wants_root {
        draft.carried_with(
            path,
            &format!("{PLACE}.init_containers"),
            "It needs the grant `run-as-root-init`, which the policy has",
        );
    } else if wants_other {
        draft.carried_with(path, &format!("{PLACE}.init_containers"), "It runs as the lab's own user");
    } else {
        let note = "It runs as the lab's own user, also if its image says another one: give it `runAsUser: 0` if it needs root";
        draft.carried_with(path, &format!("{PLACE}.init_containers"), note);
    }
    if let Some(context) = init.get_mut("securityContext") {
        let known = [
            "allowPrivilegeEscalation",
            "capabilities",
            "privileged",
            "readOnlyRootFilesystem",
            "runAsGroup",
            "runAsNonRoot",
            "runAsUser",
            "seccompProfile",
        ];
        without_others(draft, &below(path, "securityContext"), context, &known);
    }
    init
}

fn sidecar(draft: &mut Draft<'_>, path: &str, value: &Value) -> Value {
    let mut sidecar = value.clone();
    without_credentials(draft, path, &mut sidecar);
    if let Some(mounts) = value.get("volumeMounts") {
        sidecar["volumeMounts"] = entries(draft, &below(path, "volumeMounts"), mounts, mount);
    }
    if let Some(fields) = sidecar.as_object_mut() {
        fields.remove("securityContext");
    }
    if is_nothing(&value["securityContext"]) {
        let note = "It runs with the user and the restrictions of the lab: an image that has to start as another user is better off in \
                    a Deployment";
        draft.carried_with(path, &format!("{PLACE}.extra_containers"), note);
    } else {
        draft.open(
            &below(path, "securityContext"),
            "set the user or the privileges of a container beside that of the lab, which is carried over without",
            "Try it: it has the user and the restrictions of the lab. An image that has to start as another user does not work here, \
             and is better off in a Deployment",
        );
    }
    sidecar
}

pub(crate) fn pull_policy(draft: &mut Draft<'_>, path: &str, value: &Value) {
    draft.set_service("lab.image_pull_policy", value.clone());
    draft.carried(path, "lab.image_pull_policy");
}

pub(crate) fn pull_secrets(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let name = |entry: &Value| entry.get("name").unwrap_or(entry).as_str().map(str::to_owned);
    let Some(names) =
        value.as_array().and_then(|entries| entries.iter().map(name).collect::<Option<Vec<_>>>())
    else {
        return draft.wrong_form(path);
    };
    match names.as_slice() {
        [] => draft.not_needed(path, "has no value"),
        [name] => {
            let secret = json!({"name": name, "key": ".dockerconfigjson", "pull_secret": true});
            draft.set_service("lab.secrets", json!([secret]));
            let note = format!("Copy the Secret `{name}` to the namespace of this service");
            draft.carried_with(path, "lab.secrets", &note);
        }
        _ => draft.open(
            path,
            "names more than one Secret with a login for images",
            "Labs have one: put all logins into one Secret, and write it to `lab.secrets` with `pull_secret: true`",
        ),
    }
}

pub(crate) fn pod_name(draft: &mut Draft<'_>, path: &str, value: &Value) {
    draft.set_service("names.pod", value.clone());
    draft.carried(path, "names.pod");
}

pub(crate) fn privilege_escalation(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let Some(allowed) = value.as_bool() else { return draft.wrong_form(path) };
    draft.set_service("lab.security.privilege_escalation", allowed.into());
    let note = if allowed { "For `sudo` labs also need `lab.security.default_capabilities`" } else { "" };
    draft.carried_with(path, "lab.security.privilege_escalation", note);
}

/// Carries over the account under which all labs run.
pub(crate) fn service_account(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if plain_text(value).is_empty() {
        return draft.not_needed(path, "has no value");
    }
    put(draft, path, "service_account", value);
    if !draft.kubespawner.contains_key("service_account") || plain_text(value).contains('{') {
        return;
    }
    let note = "The account stays yours, with its annotations. Labs get no token of the cluster's API unless \
                `lab.security.service_account_token` is true; tokens for a cloud that a webhook adds need their audience in \
                `admissionPolicy.tokenAudiences` of the chart, and where a cloud gives credentials by its metadata server, \
                `lab.network_policy` has to let labs reach it";
    draft.carried_with(path, &format!("{PLACE}.service_account"), note);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of names in the source of the default policy, which shares no code with the service.
    fn list<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
        let start = source.find(&format!("const {name}: ")).unwrap();
        let list = &source[start..];
        let (_, list) = list[..list.find("];").unwrap()].split_once("= [").unwrap();
        list.split('"').skip(1).step_by(2).collect()
    }

    #[test]
    fn the_default_policy_leaves_out_the_same_keys() {
        let refused = include_str!("../../../plugins/default/src/profile/refused.rs");
        let parts = include_str!("../../../plugins/default/src/profile/pod_parts.rs");
        assert_eq!(list(refused, "CLAIM"), CLAIM);
        assert_eq!(list(parts, "OF_THE_BASELINE"), OF_THE_BASELINE);
    }
}
