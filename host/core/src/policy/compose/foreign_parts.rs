//! Checks that a policy uses what other policies of the chain have asked for only as far as its own grants go.
//!
//! Without this check, a policy without grants could mount the directory of the node that another policy was granted,
//! or change what a privileged container of another policy runs.

use k8s_openapi::api::core::v1::{Container, Pod, Volume};

use super::{ChainAnswer, SpawnRejected};
use crate::grants::{Grant, Need};
use crate::policy::{FieldError, SecurityProfile, VolumeSource, pod_patch};

/// Checks every answer against the others.
pub(super) fn check(answers: &[ChainAnswer]) -> Result<(), SpawnRejected> {
    for answer in answers {
        let denied = needs(answer, answers).into_iter().filter(|need| !answer.grants.cover(need));
        let denied: Vec<_> = denied
            .map(|need| {
                let violation = need.violated_by(&answer.policy);
                FieldError::new(violation.field.clone(), violation.to_string())
            })
            .collect();
        if !denied.is_empty() {
            return Err(SpawnRejected::policy(&answer.policy, denied));
        }
    }
    Ok(())
}

/// The grants that an answer needs because of what it uses of other policies.
fn needs(answer: &ChainAnswer, answers: &[ChainAnswer]) -> Vec<Need> {
    let mut needs = Vec::new();
    for (field, volume) in mounted_volumes(answer) {
        let Some((policy, granted)) = source_of(&volume, answers) else { continue };
        if policy != answer.policy {
            let need = |(grant, wanted)| Need { field: field.clone(), grant, wanted: Some(wanted) };
            needs.extend(granted.into_iter().map(need));
        }
    }
    for container in patched_containers(answer) {
        let owner = answers.iter().rev().find_map(|other| {
            let mut inits = other.customization.init_containers.iter();
            inits.find(|init| init.name == container).map(|init| (&other.policy, init.profile))
        });
        let grant = match owner {
            Some((policy, _)) if *policy == answer.policy => None,
            Some((_, SecurityProfile::Baseline)) => Some(Grant::RunAsRootInit),
            Some((_, SecurityProfile::Privileged)) => Some(Grant::PrivilegedInit),
            Some((_, SecurityProfile::Restricted)) | None => None,
        };
        let field = "pod_patch".to_owned();
        needs.extend(grant.map(|grant| Need { field, grant, wanted: None }));
    }
    needs
}

/// The volumes that an answer mounts, each with the field that does.
fn mounted_volumes(answer: &ChainAnswer) -> Vec<(String, String)> {
    let asked = &answer.customization;
    let own = asked.mounts.iter().enumerate();
    let mut mounted: Vec<_> =
        own.map(|(at, mount)| (format!("mounts[{at}].volume"), mount.volume.clone())).collect();
    for (at, init) in asked.init_containers.iter().enumerate() {
        let field = |n| format!("init_containers[{at}].mounts[{n}].volume");
        mounted.extend(init.mounts.iter().enumerate().map(|(n, mount)| (field(n), mount.volume.clone())));
    }
    let patched = containers_of_patch(answer)
        .into_iter()
        .flat_map(|container| container.volume_mounts.unwrap_or_default());
    mounted.extend(patched.map(|mount| ("pod_patch".to_owned(), mount.name)));
    mounted
}

/// The policy that decides the source of a volume, and the grants that the source needs. The last policy decides, and
/// patches come after all other answers.
fn source_of<'a>(volume: &str, answers: &'a [ChainAnswer]) -> Option<(&'a str, Vec<(Grant, String)>)> {
    let by_patch = answers.iter().rev().find_map(|answer| {
        let volumes = patch_of(answer)?.spec?.volumes?;
        let found = volumes.into_iter().find(|found| found.name == volume)?;
        Some((answer.policy.as_str(), grants_of(found)))
    });
    by_patch.or_else(|| {
        answers.iter().rev().find_map(|answer| {
            let mut volumes = answer.customization.volumes.iter();
            let grants = match &volumes.find(|found| found.name == volume)?.source {
                VolumeSource::HostPath(path) => vec![(Grant::HostPath, path.clone())],
                VolumeSource::Secret(secret) => vec![(Grant::Secrets, secret.name.clone())],
                _ => Vec::new(),
            };
            Some((answer.policy.as_str(), grants))
        })
    })
}

fn grants_of(volume: Volume) -> Vec<(Grant, String)> {
    let host_path = volume.host_path.map(|host| (Grant::HostPath, host.path));
    let secret = volume.secret.and_then(|secret| secret.secret_name);
    let projected = volume.projected.and_then(|projected| projected.sources).into_iter().flatten();
    let secrets =
        secret.into_iter().chain(projected.filter_map(|source| source.secret).map(|secret| secret.name));
    host_path.into_iter().chain(secrets.map(|name| (Grant::Secrets, name))).collect()
}

fn patched_containers(answer: &ChainAnswer) -> Vec<String> {
    containers_of_patch(answer).into_iter().map(|container| container.name).collect()
}

fn containers_of_patch(answer: &ChainAnswer) -> Vec<Container> {
    let spec = patch_of(answer).and_then(|pod| pod.spec);
    spec.map(|spec| spec.containers.into_iter().chain(spec.init_containers.into_iter().flatten()).collect())
        .unwrap_or_default()
}

/// The answer's patch. An invalid one was refused before.
fn patch_of(answer: &ChainAnswer) -> Option<Pod> {
    pod_patch::parse(answer.customization.pod_patch.as_deref()?).ok()
}
