//! The keys of the chart, and what becomes of each.

use serde_json::Value;

use crate::becomes::{Becomes, plain_text};
use crate::draft::{Draft, is_nothing};
use crate::hub_names::HubNames;
use crate::values_file::below;
use crate::{identity, name_overrides, network, profiles, settings, spawner, storage};

use Becomes::{Converted, NotNeeded, Open, Profiles, Setting, Stays};

const OF_THE_HUB: &str = "is about the Hub, its proxy or its users, and not about labs";

/// The keys, in the order in which they are converted: what comes later counts over what comes before.
const KEYS: &[(&str, Becomes)] = &[
    ("singleuser.image", Converted(image)),
    ("singleuser.cmd", Setting("cmd")),
    ("singleuser.args", Setting("args")),
    ("singleuser.defaultUrl", Setting("default_url")),
    ("singleuser.extraEnv", Setting("environment")),
    ("singleuser.memory.limit", Setting("mem_limit")),
    ("singleuser.memory.guarantee", Setting("mem_guarantee")),
    ("singleuser.cpu.limit", Setting("cpu_limit")),
    ("singleuser.cpu.guarantee", Setting("cpu_guarantee")),
    ("singleuser.extraResource.limits", Setting("extra_resource_limits")),
    ("singleuser.extraResource.guarantees", Setting("extra_resource_guarantees")),
    ("singleuser.extraLabels", Setting("extra_labels")),
    ("singleuser.extraAnnotations", Setting("extra_annotations")),
    ("singleuser.nodeSelector", Setting("node_selector")),
    ("singleuser.extraTolerations", Converted(tolerations)),
    ("singleuser.extraNodeAffinity.required", Setting("node_affinity_required")),
    ("singleuser.extraNodeAffinity.preferred", Setting("node_affinity_preferred")),
    ("singleuser.extraPodAffinity.required", Setting("pod_affinity_required")),
    ("singleuser.extraPodAffinity.preferred", Setting("pod_affinity_preferred")),
    ("singleuser.extraPodAntiAffinity.required", Setting("pod_anti_affinity_required")),
    ("singleuser.extraPodAntiAffinity.preferred", Setting("pod_anti_affinity_preferred")),
    ("singleuser.storage", Converted(storage::storage)),
    ("singleuser.extraFiles", Converted(storage::files)),
    ("singleuser.initContainers", Setting("init_containers")),
    ("singleuser.extraContainers", Setting("extra_containers")),
    ("singleuser.lifecycleHooks", Setting("lifecycle_hooks")),
    ("singleuser.extraPodConfig", Setting("extra_pod_config")),
    ("singleuser.startTimeout", Setting("start_timeout")),
    ("singleuser.podNameTemplate", Converted(settings::pod_name)),
    ("singleuser.uid", Converted(identity::uid)),
    ("singleuser.fsGid", Converted(identity::fs_gid)),
    ("singleuser.allowPrivilegeEscalation", Converted(settings::privilege_escalation)),
    ("singleuser.serviceAccountName", Converted(settings::service_account)),
    ("singleuser.cloudMetadata", Converted(network::metadata)),
    ("singleuser.networkPolicy", Converted(network::policy)),
    (
        "singleuser.networkTools",
        NotNeeded("was the image of the container that blocked the cloud's metadata"),
    ),
    ("singleuser.events", NotNeeded("events of the pod are always shown while a lab starts")),
    ("singleuser.profileList", Profiles),
    ("scheduling.userPods.tolerations", Converted(tolerations)),
    ("scheduling.userPods.nodeAffinity.matchNodePurpose", Converted(node_purpose)),
    ("scheduling.userScheduler.enabled", Converted(user_scheduler)),
    (
        "scheduling.userScheduler",
        NotNeeded("is about the scheduler for pods of users, which is not used any more"),
    ),
    ("scheduling.userPlaceholder", Converted(user_placeholder)),
    ("scheduling.podPriority.enabled", Converted(pod_priority)),
    ("scheduling.podPriority", Stays("is about the chart's priority classes")),
    ("scheduling.corePods", Stays(OF_THE_HUB)),
    ("prePuller.hook.enabled", Converted(pre_puller)),
    ("prePuller.continuous.enabled", Converted(pre_puller)),
    ("prePuller.pullProfileListImages", NotNeeded("`prepull_profiles` of the policy is for all of them")),
    ("prePuller.extraImages", Converted(extra_images)),
    (
        "prePuller",
        NotNeeded("was about the pods that pulled images; this service has pods of its own for that"),
    ),
    ("hub.config.Spawner", Converted(spawner::all)),
    ("hub.config.KubeSpawner", Converted(spawner::all)),
    ("hub.config.JupyterHub.spawner_class", NotNeeded("`hub-values.yaml` sets the class of this service")),
    ("hub.config", Stays(OF_THE_HUB)),
    ("hub.extraConfig", Converted(spawner::snippets)),
    ("hub.extraFiles", Converted(spawner::hub_files)),
    (
        "hub.concurrentSpawnLimit",
        NotNeeded(
            "`limits.concurrent_spawns` of this service limits starts; `hub-values.yaml` raises that of the Hub",
        ),
    ),
    (
        "hub.consecutiveFailureLimit",
        NotNeeded("labs that fail say nothing about the Hub any more; `hub-values.yaml` sets 0"),
    ),
    ("hub.activeServerLimit", Stays(OF_THE_HUB)),
    (
        "hub.image",
        NotNeeded(
            "`hub-values.yaml` names another one: build that from this one (deploy/zero-to-jupyterhub/Containerfile)",
        ),
    ),
    ("hub.networkPolicy.egress", Converted(network::of_hub)),
    ("hub.extraEnv", Converted(hub_env)),
    ("hub", Stays(OF_THE_HUB)),
    ("proxy.chp.networkPolicy.egress", Converted(network::of_proxy)),
    ("proxy", Stays(OF_THE_HUB)),
    ("ingress", Stays(OF_THE_HUB)),
    ("httpRoute", Stays(OF_THE_HUB)),
    ("cull", Stays("the culler asks the Hub, and works with every spawner")),
    ("debug", Stays(OF_THE_HUB)),
    ("global", Stays(OF_THE_HUB)),
    ("rbac", NotNeeded("the Hub needs no permissions on the cluster; `hub-values.yaml` takes them away")),
    ("imagePullSecret", Converted(pull_secret)),
    ("imagePullSecrets", Converted(settings::pull_secrets)),
    ("fullnameOverride", Converted(name_overrides::fullname)),
    ("nameOverride", Converted(name_overrides::name)),
    ("enabled", Stays("is about the chart as a part of another one")),
    (
        "custom",
        Stays(
            "is for code of your own in `hub.extraConfig` or `hub.extraFiles`, which is listed if it does something about labs",
        ),
    ),
];

/// True for a key at the top of the chart's values.
pub(crate) fn is_root(key: &str) -> bool {
    KEYS.iter().any(|(path, _)| path.split('.').next() == Some(key))
}

/// The keys of the table.
#[cfg(test)]
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|(path, _)| *path)
}

/// Converts all values.
pub(crate) fn convert(values: &Value, draft: &mut Draft<'_>) {
    draft.set_hub(HubNames::from_values(values));
    for (path, becomes) in KEYS {
        match path.split('.').try_fold(values, |value, key| value.get(key)) {
            Some(value) => apply(*becomes, path, value, draft),
            None if draft.is_given(path) => removed(*becomes, path, draft),
            None => {}
        }
    }
    unknown("", values, draft);
}

/// Reports a key that a file sets to `null`, so that the chart's default does not hold.
fn removed(becomes: Becomes, path: &str, draft: &mut Draft<'_>) {
    match becomes {
        Converted(convert) if matches!(path, "singleuser.uid" | "singleuser.fsGid" | "fullnameOverride") => {
            convert(draft, path, &Value::Null);
        }
        _ => draft.not_needed(path, "is `null`, which takes the chart's default away"),
    }
}

/// Applies a rule to a value, unless a rule below it is more exact.
fn apply(becomes: Becomes, path: &str, value: &Value, draft: &mut Draft<'_>) {
    match becomes {
        Setting(setting) => settings::put(draft, path, setting, value),
        Becomes::Service(to) => {
            draft.set_service(to, value.clone());
            draft.carried(path, to);
        }
        Profiles => profiles::list(draft, path, value),
        Converted(convert) => {
            let before = draft.reported();
            convert(draft, path, value);
            if draft.reported() == before && draft.is_given(path) {
                draft.open(
                    path,
                    "is not of the form that the chart takes",
                    "Look up what it was meant to do",
                );
            }
        }
        Stays(why) => rest(path, value, draft, &mut |draft, path| draft.stays(path, why)),
        NotNeeded(why) => rest(path, value, draft, &mut |draft, path| draft.not_needed(path, why)),
        Open(did, ways) if !is_nothing(value) => {
            rest(path, value, draft, &mut |draft, path| draft.open(path, did, ways));
        }
        Open(..) => draft.not_needed(path, "has no value"),
    }
}

/// Reports what is below a path and for which no more exact rule exists.
fn rest(path: &str, value: &Value, draft: &mut Draft<'_>, report: &mut dyn FnMut(&mut Draft<'_>, &str)) {
    let prefix = format!("{path}.");
    let more_exact = |path: &str| KEYS.iter().any(|(known, _)| *known == path);
    let is_end = value.as_object().is_none_or(serde_json::Map::is_empty);
    if is_end || !KEYS.iter().any(|(known, _)| known.starts_with(&prefix)) {
        if draft.is_given(path) {
            report(draft, path);
        }
        return;
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = below(path, key);
        if !more_exact(&path) {
            rest(&path, value, draft, report);
        }
    }
}

/// Reports the keys for which there is no rule at all.
fn unknown(path: &str, value: &Value, draft: &mut Draft<'_>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let here = below(path, key);
        if KEYS.iter().any(|(known, _)| *known == here || here.starts_with(&format!("{known}."))) {
            continue;
        }
        let leads_on = KEYS.iter().any(|(known, _)| known.starts_with(&format!("{here}.")));
        if leads_on && value.is_object() {
            unknown(&here, value, draft);
        } else if !is_nothing(value) {
            draft.open(
                &here,
                "is no key of the chart that this program knows",
                "If something of yours reads it, look there; otherwise it had no effect",
            );
        } else {
            draft.not_needed(&here, "has no value");
        }
    }
}

fn image(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let text = |key: &str| value.get(key).map(plain_text).filter(|text| !text.is_empty());
    if let Some(name) = text("name") {
        let image = text("tag").map_or(name.clone(), |tag| format!("{name}:{tag}"));
        draft.set("image", image.into());
        for key in ["name", "tag"].into_iter().filter(|key| value.get(key).is_some()) {
            draft.carried(&below(path, key), "policies[0].config.kubespawner.image");
        }
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = below(path, key);
        match key.as_str() {
            "name" | "tag" => {}
            _ if is_nothing(value) => draft.not_needed(&path, "has no value"),
            "pullPolicy" => settings::pull_policy(draft, &path, value),
            "pullSecrets" => settings::pull_secrets(draft, &path, value),
            _ => draft.open(
                &path,
                "is no key of the chart that this program knows",
                "It has no counterpart here",
            ),
        }
    }
}

/// Adds tolerations: those of the site, and those that the chart gives to pods of users.
fn tolerations(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let items: Vec<Value> = match value {
        Value::Array(items) => items.clone(),
        Value::Object(entries) => entries.values().cloned().collect(),
        _ => Vec::new(),
    };
    if items.is_empty() {
        draft.not_needed(path, "has no value");
        return;
    }
    draft.extend("tolerations", items);
    draft.carried(path, "policies[0].config.kubespawner.tolerations");
}

fn node_purpose(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let expression = serde_json::json!({
        "matchExpressions": [{"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}]
    });
    let (setting, term) = match value.as_str() {
        Some("prefer") => {
            ("node_affinity_preferred", serde_json::json!({"weight": 100, "preference": expression}))
        }
        Some("require") => ("node_affinity_required", expression),
        _ => return draft.not_needed(path, "prefers no nodes"),
    };
    draft.extend(setting, [term]);
    draft.carried(path, &format!("policies[0].config.kubespawner.{setting}"));
}

fn user_scheduler(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if value == &Value::Bool(true) {
        draft.policy.insert("affinity".to_owned(), "pack".into());
        let note =
            "The cluster's own scheduler prefers nodes with other labs, so that empty nodes can be removed";
        draft.carried_with(path, "policies[0].config.affinity", note);
    } else {
        draft.not_needed(path, "labs use the cluster's own scheduler");
    }
}

fn user_placeholder(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let replicas = value.get("replicas").and_then(Value::as_u64).unwrap_or(0);
    if value.get("enabled") == Some(&Value::Bool(false)) || replicas == 0 {
        draft.not_needed(path, "there were no placeholders");
    } else {
        draft.open(
            path,
            &format!("{replicas} pods kept room free for the next labs, so that a node was added before it was needed"),
            "They can stay (`deploy/MOVING-FROM-KUBESPAWNER.md` says with which values), or leave them out: the first lab on a \
             new node waits for that node",
        );
    }
}

fn pod_priority(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if value == &Value::Bool(true) {
        draft.open(
            path,
            "labs had the chart's priority class, which placeholders had to give way to",
            "Write the name of that class, or of another one, to `lab.priority_class_name`",
        );
    } else {
        draft.not_needed(path, "labs had no priority class");
    }
}

fn pre_puller(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if value != &Value::Bool(true) {
        return draft.not_needed(path, "no images were pulled before somebody asked for them");
    }
    let taints = ["hub.jupyter.org/dedicated", "hub.jupyter.org_dedicated"];
    draft.set_service("images.nodes.tolerated_taints", serde_json::json!(taints));
    if draft.service["images"].get("prepull").is_none() {
        draft.set_service("images.prepull", serde_json::json!({}));
    }
    draft.policy.insert("prepull_profiles".to_owned(), true.into());
    draft.carried(path, "images.prepull, policies[0].config.prepull_profiles");
}

/// Converts the login for images of which the chart makes a Secret.
fn pull_secret(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let made = value.get("create") == Some(&Value::Bool(true));
    for key in value.as_object().into_iter().flatten().map(|(key, _)| below(path, key)) {
        if made {
            draft
                .stays(&key, "is about the Secret with the login for images, which the chart goes on making");
        } else {
            draft.not_needed(&key, "the chart made no Secret of it");
        }
    }
    if made {
        let name = draft.hub.object("image-pull-secret");
        settings::pull_secrets(draft, &below(path, "create"), &serde_json::json!([name]));
    }
}

/// Reports variables of the Hub. As a list, they would be replaced by the map that the new values have.
fn hub_env(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if value.as_array().is_some_and(|list| !list.is_empty()) {
        draft.open(
            path,
            "is a list, which the map in `hub-values.yaml` would replace",
            "Write it as a map: `NAME: value`, or `NAME: {valueFrom: …}`",
        );
    } else {
        draft.stays(path, OF_THE_HUB);
    }
}

fn extra_images(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let image = |entry: &Value| {
        let entry =
            entry.as_object().filter(|entry| entry.keys().all(|key| key == "name" || key == "tag"))?;
        let name = entry.get("name")?.as_str()?;
        let tag = entry.get("tag").map(plain_text).filter(|tag| !tag.is_empty());
        Some(serde_json::json!({"reference": tag.map_or(name.to_owned(), |tag| format!("{name}:{tag}"))}))
    };
    let images = value.as_object().and_then(|all| all.values().map(image).collect::<Option<Vec<_>>>());
    let Some(images) = images else { return draft.wrong_form(path) };
    if images.is_empty() {
        return draft.not_needed(path, "has no value");
    }
    draft.set_service("images.prepull.images", images.into());
    draft.carried(path, "images.prepull.images");
}
