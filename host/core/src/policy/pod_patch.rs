//! Patches of the Pod, for settings that a customization has no field for.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Volume};
use serde_json::Value;

use crate::config::administrators::Lift;
use crate::names::ObjectName;
use crate::values::path;

/// The field with the name of the pod's service account. It needs a grant of its own.
pub(crate) const SERVICE_ACCOUNT: &str = "spec.serviceAccountName";

/// The fields with which a patch asks for a lift of the baseline. They need the grant for it, and no other.
pub(crate) const LIFTS: [&str; 3] = [
    "spec.containers.name",
    "spec.containers.securityContext.privileged",
    "spec.containers.securityContext.runAsUser",
];

/// Parses a patch into Kubernetes' own types. Unknown fields are refused, so that a misspelt field is an error instead
/// of being ignored.
pub(crate) fn parse(patch: &str) -> Result<Pod, String> {
    let written: Value = serde_json::from_str(patch).map_err(|error| format!("not JSON: {error}"))?;
    if !written.is_object() {
        return Err("not an object".to_owned());
    }
    let pod: Pod =
        serde_json::from_value(written.clone()).map_err(|error| format!("not a part of a Pod: {error}"))?;
    let read = serde_json::to_value(&pod).map_err(|error| format!("not a part of a Pod: {error}"))?;
    let known = leaves(&read);
    match leaves(&written).into_iter().find(|path| !known.contains(path)) {
        Some(unknown) => Err(format!("a Pod has no field `{unknown}`, or not of this kind")),
        None => named(pod).and_then(with_allowed_volumes).and_then(with_account),
    }
}

/// The kinds of volumes that a patch may have. [`reach`] finds the parts that need a grant.
const VOLUME_KINDS: [&str; 7] =
    ["configMap", "downwardAPI", "emptyDir", "hostPath", "nfs", "projected", "secret"];
/// The kinds of sources of a projected volume that a patch may have: none with which a lab could authenticate itself.
const PROJECTED_KINDS: [&str; 3] = ["configMap", "downwardAPI", "secret"];

/// Checks the volumes. A patch may have neither claims nor CSI volumes nor tokens of service accounts: claims belong
/// to users, CSI volumes read Secrets by themselves, and tokens give access to the cluster.
fn with_allowed_volumes(pod: Pod) -> Result<Pod, String> {
    let spec = pod.spec.as_ref();
    for volume in spec.into_iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        let written = serde_json::to_value(volume).unwrap_or_default();
        only(&written, &VOLUME_KINDS, &volume.name, "volume")?;
        for source in written["projected"]["sources"].as_array().into_iter().flatten() {
            only(source, &PROJECTED_KINDS, &volume.name, "projected volume")?;
        }
        let host_path = volume.host_path.iter().map(|host| host.path.as_str());
        let mut paths = host_path.chain(volume.nfs.iter().map(|nfs| nfs.path.as_str()));
        if paths.any(|path| !path::is_absolute(path)) {
            return Err(format!("the path of the volume `{}` is not absolute, or has `..`", volume.name));
        }
        if volume.nfs.as_ref().is_some_and(|nfs| !path::is_host(&nfs.server)) {
            return Err(format!(
                "the server of the volume `{}` is not the name or the address of one host",
                volume.name
            ));
        }
    }
    Ok(pod)
}

fn only(written: &Value, kinds: &[&str], volume: &str, what: &str) -> Result<(), String> {
    let other = written.as_object().into_iter().flat_map(|fields| fields.keys());
    match other.into_iter().find(|kind| *kind != "name" && !kinds.contains(&kind.as_str())) {
        None => Ok(()),
        Some(other) => {
            let kinds = kinds.join(", ");
            Err(format!("the {what} `{volume}` is of the kind `{other}`; a patch may have {kinds}"))
        }
    }
}

/// Checks the name of the service account.
fn with_account(pod: Pod) -> Result<Pod, String> {
    match pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()).map(ObjectName::parse) {
        Some(Err(error)) => Err(format!("the name of the service account: {error}")),
        _ => Ok(pod),
    }
}

/// Checks that all items of lists have names: items are merged by name, and one without a name would be added.
fn named(pod: Pod) -> Result<Pod, String> {
    let spec = pod.spec.as_ref();
    let containers =
        spec.into_iter().flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
    let volumes = spec.into_iter().flat_map(|spec| spec.volumes.iter().flatten());
    if containers
        .map(|container| &container.name)
        .chain(volumes.map(|volume| &volume.name))
        .any(String::is_empty)
    {
        return Err("a container or volume has no name, by which the one to change is found".to_owned());
    }
    Ok(pod)
}

/// Returns the dotted paths of all values that a patch sets, without list positions, sorted and without duplicates. The
/// result is empty for invalid JSON, which [`parse`] refuses.
pub(crate) fn paths(patch: &str) -> Vec<String> {
    serde_json::from_str(patch).map(|value| leaves(&value)).unwrap_or_default()
}

/// Things outside the pod that a patch uses. They need their own grants, even if volumes or containers may be patched.
#[derive(Default)]
pub(crate) struct PatchTargets {
    /// Paths of the node.
    pub(crate) host_paths: Vec<String>,
    /// Secrets of the namespace.
    pub(crate) secrets: Vec<String>,
    /// Keys of labels and annotations, which other programs may act on.
    pub(crate) metadata: Vec<String>,
    /// The service account.
    pub(crate) service_account: Option<ObjectName>,
    /// The parts of the security baseline that a container is to be without, each with the container's name.
    pub(crate) lifts: Vec<(String, Lift)>,
}

impl PatchTargets {
    /// Adds the things outside the pod that a volume uses.
    pub(crate) fn add(&mut self, volume: Volume) {
        self.host_paths.extend(volume.host_path.map(|host| host.path));
        self.secrets.extend(volume.secret.and_then(|secret| secret.secret_name));
        let projected = volume.projected.and_then(|projected| projected.sources).into_iter().flatten();
        self.secrets.extend(projected.filter_map(|source| source.secret).map(|secret| secret.name));
    }
}

/// Finds the things outside the pod that a patch uses. The result is empty for an invalid patch, which [`parse`]
/// refuses.
pub(crate) fn reach(patch: &str) -> PatchTargets {
    let mut reach = PatchTargets::default();
    let Ok(pod) = parse(patch) else { return reach };
    let metadata = pod.metadata;
    reach.metadata =
        [metadata.labels, metadata.annotations].into_iter().flatten().flat_map(BTreeMap::into_keys).collect();
    reach.metadata.sort();
    let Some(spec) = pod.spec else { return reach };
    reach.service_account = spec.service_account_name.and_then(|name| ObjectName::parse(name).ok());
    spec.volumes.into_iter().flatten().for_each(|volume| reach.add(volume));
    for container in &spec.containers {
        let context = container.security_context.as_ref();
        let root = context.and_then(|context| context.run_as_user) == Some(0);
        let privileged = context.and_then(|context| context.privileged) == Some(true);
        let lifts = [(root, Lift::Root), (privileged, Lift::Privileged)];
        let lifts = lifts.into_iter().filter(|(is_asked, _)| *is_asked);
        reach.lifts.extend(lifts.map(|(_, lift)| (container.name.clone(), lift)));
    }
    for container in spec.containers.into_iter().chain(spec.init_containers.into_iter().flatten()) {
        let whole = container.env_from.into_iter().flatten().filter_map(|from| from.secret_ref);
        reach.secrets.extend(whole.map(|secret| secret.name));
        let single = container.env.into_iter().flatten().filter_map(|var| var.value_from?.secret_key_ref);
        reach.secrets.extend(single.map(|key| key.name));
    }
    reach
}

fn leaves(value: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    collect(value, String::new(), &mut paths);
    paths.retain(|path| !matches!(path.as_str(), "apiVersion" | "kind" | ""));
    paths.sort();
    paths.dedup();
    paths
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(value, below, paths);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                collect(item, path.clone(), paths);
            }
        }
        _ => paths.push(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_read_as_a_pod() {
        let pod = parse(r#"{"spec":{"priority":7,"dnsConfig":{"nameservers":["1.1.1.1"]}}}"#).unwrap();
        assert_eq!(pod.spec.unwrap().priority, Some(7));
    }

    #[test]
    fn a_patch_that_does_not_fit_a_pod_is_refused() {
        for (patch, says) in [
            ("[", "not JSON"),
            ("7", "not an object"),
            (r#"{"spec":{"hostAlias":[]}}"#, "spec.hostAlias"),
            (r#"{"spec":{"priority":"high"}}"#, "not a part of a Pod"),
            (r#"{"spec":{"$patch":"delete"}}"#, "spec.$patch"),
            (r#"{"spec":{"containers":[{"image":"x"}]}}"#, "no name"),
            (r#"{"spec":{"volumes":[{"name":"v","csi":{"driver":"d"}}]}}"#, "of the kind `csi`"),
            (
                r#"{"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"of-bob"}}]}}"#,
                "of the kind `persistentVolumeClaim`",
            ),
            (
                r#"{"spec":{"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]}}"#,
                "of the kind `serviceAccountToken`",
            ),
            (r#"{"spec":{"volumes":[{"name":"v","hostPath":{"path":"/data/../etc"}}]}}"#, "has `..`"),
            (r#"{"spec":{"serviceAccountName":""}}"#, "service account"),
            (r#"{"spec":{"serviceAccountName":"../hub"}}"#, "service account"),
            (r#"{"spec":{"volumes":[{"name":"v","nfs":{"server":"n","path":"/x/../y"}}]}}"#, "has `..`"),
            (r#"{"spec":{"volumes":[{"name":"v","nfs":{"server":"n,m","path":"/x"}}]}}"#, "one host"),
        ] {
            let error = parse(patch).unwrap_err();
            assert!(error.contains(says), "{patch}: {error}");
        }
    }

    #[test]
    fn a_path_is_compared_by_whole_steps() {
        assert!(path::is_field_at_or_below("spec.hostAliases.ip", "spec.hostAliases"));
        assert!(!path::is_field_at_or_below("spec.hostAliasesX", "spec.hostAliases"));
    }
}
