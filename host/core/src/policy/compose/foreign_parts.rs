//! Checks that a policy uses what other policies of the chain have asked for only as far as its own grants go.
//!
//! Without this check, a policy without grants could mount the directory of the node that another policy was granted,
//! or change what a privileged container of another policy runs.

use k8s_openapi::api::core::v1::{Container, PodSpec};

use super::{ChainAnswer, SpawnRejected};
use crate::grants::{Grant, Need};
use crate::policy::{Author, FieldError, grants, pod_patch};

/// An answer, and the spec that its patch sets, which is parsed once.
struct Part<'a> {
    answer: &'a ChainAnswer,
    patch: PodSpec,
}

/// Checks every answer against the others.
pub(super) fn check(answers: &[ChainAnswer]) -> Result<(), SpawnRejected> {
    let parts: Vec<Part<'_>> = answers.iter().map(Part::of).collect();
    for part in &parts {
        let answer = part.answer;
        let denied = part.needs(&parts).into_iter().filter(|need| !answer.grants.cover(need));
        let denied: Vec<_> = denied
            .map(|need| {
                let violation = need.violated_by(&answer.author);
                FieldError::new(violation.field.clone(), violation.to_string())
            })
            .collect();
        if !denied.is_empty() {
            return Err(SpawnRejected::by(&answer.author, denied));
        }
    }
    Ok(())
}

impl<'a> Part<'a> {
    /// An invalid patch was refused before.
    fn of(answer: &'a ChainAnswer) -> Self {
        let patch = answer.customization.pod_patch.as_deref().and_then(|patch| pod_patch::parse(patch).ok());
        Self { answer, patch: patch.and_then(|pod| pod.spec).unwrap_or_default() }
    }

    /// The grants that the answer needs because of what it uses of other policies.
    fn needs(&self, parts: &[Part<'_>]) -> Vec<Need> {
        let own = &self.answer.author;
        let mut needs = Vec::new();
        for (field, volume) in self.mounted_volumes() {
            let foreign = sources_of(volume, parts).into_iter().filter(|(author, ..)| *author != own);
            let need = |(_, grant, wanted)| Need { field: field.clone(), grant, wanted: Some(wanted) };
            needs.extend(foreign.map(need));
        }
        for container in self.patched_containers() {
            let owner = parts.iter().rev().find_map(|part| {
                let mut inits = part.answer.customization.init_containers.iter();
                inits.find(|init| init.name == container.name).map(|init| (&part.answer.author, init.profile))
            });
            let foreign = owner.filter(|(author, _)| *author != own);
            let grant = foreign.and_then(|(_, profile)| grants::of_profile(profile));
            let field = "pod_patch".to_owned();
            needs.extend(grant.map(|grant| Need { field, grant, wanted: None }));
        }
        needs
    }

    /// The volumes that the answer mounts, each with the field that does.
    fn mounted_volumes(&self) -> Vec<(String, &str)> {
        let asked = &self.answer.customization;
        let mut mounted: Vec<_> = asked
            .mounts
            .iter()
            .enumerate()
            .map(|(at, mount)| (format!("mounts[{at}].volume"), mount.volume.as_str()))
            .collect();
        for (at, init) in asked.init_containers.iter().enumerate() {
            let field = |n| format!("init_containers[{at}].mounts[{n}].volume");
            mounted
                .extend(init.mounts.iter().enumerate().map(|(n, mount)| (field(n), mount.volume.as_str())));
        }
        let patched =
            self.patched_containers().flat_map(|container| container.volume_mounts.iter().flatten());
        mounted.extend(patched.map(|mount| ("pod_patch".to_owned(), mount.name.as_str())));
        mounted
    }

    fn patched_containers(&self) -> impl Iterator<Item = &Container> {
        self.patch.containers.iter().chain(self.patch.init_containers.iter().flatten())
    }
}

/// The grants that the source of a volume needs, each with the policy that gave the volume this source. The last policy
/// that has the volume gives it its source; patches are merged into that, so what they set comes on top of it.
fn sources_of<'a>(volume: &str, parts: &[Part<'a>]) -> Vec<(&'a Author, Grant, String)> {
    let last = parts.iter().rev().find_map(|part| {
        let mut volumes = part.answer.customization.volumes.iter();
        Some((part, &volumes.find(|found| found.name == volume)?.source))
    });
    let asked = last.and_then(|(part, source)| {
        grants::of_source(source).map(|(_, grant, wanted)| (&part.answer.author, grant, wanted))
    });
    let patched = parts.iter().flat_map(|part| {
        let mut targets = pod_patch::PatchTargets::default();
        for found in part.patch.volumes.iter().flatten().filter(|found| found.name == volume) {
            targets.add(found.clone());
        }
        let host_paths = targets.host_paths.into_iter().map(|path| (Grant::HostPath, path));
        let secrets = targets.secrets.into_iter().map(|name| (Grant::Secrets, name));
        let author = &part.answer.author;
        host_paths.chain(secrets).map(move |(grant, wanted)| (author, grant, wanted)).collect::<Vec<_>>()
    });
    asked.into_iter().chain(patched).collect()
}
