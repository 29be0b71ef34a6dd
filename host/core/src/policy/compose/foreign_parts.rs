//! Checks that a policy uses what other policies of the chain have asked for only as far as its own grants go.
//!
//! Every part of the pod has an author. A part that refers to another (a container to a volume, a patch to a container)
//! has privileges, or gives some; whoever writes the one needs the grants of the other. Without this check, a policy
//! without grants could mount the directory of the node that another policy was granted, change what a privileged
//! container of another policy runs, or replace the volume from which it runs it.

use k8s_openapi::api::core::v1::{Container, PodSpec};

use super::{ChainAnswer, SpawnRejected};
use crate::grants::{Grant, Need};
use crate::policy::{
    Author, ClaimSource, FieldError, Mount, SecurityProfile, VolumeSource, grants, pod_patch,
};

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
        for Mounted { field, volume, .. } in self.mounted_volumes() {
            let foreign = sources_of(volume, parts).into_iter().filter(|(author, ..)| *author != own);
            let need = |(_, grant, wanted)| Need { field: field.clone(), grant, wanted: Some(wanted) };
            needs.extend(foreign.map(need));
        }
        for container in self.patched_containers() {
            let foreign = owner_of(container, parts).filter(|(author, _)| *author != own);
            let grant = foreign.and_then(|(_, profile)| grants::of_profile(profile));
            let field = "pod_patch".to_owned();
            needs.extend(grant.map(|grant| Need { field, grant, wanted: None }));
        }
        for (field, volume) in self.filled_volumes(parts) {
            let users = parts.iter().filter(|part| part.answer.author != *own);
            let grants = users.flat_map(|part| part.privileges_over(volume, parts));
            needs.extend(grants.map(|grant| Need { field: field.clone(), grant, wanted: None }));
        }
        needs
    }

    /// The volumes whose content the answer decides, each with the field that does: those whose source it gives, those
    /// whose claim it creates, and those that it mounts to write where their authors let nobody write.
    fn filled_volumes<'b>(&'b self, parts: &'b [Part<'_>]) -> Vec<(String, &'b str)> {
        let asked = &self.answer.customization;
        let mut filled = Vec::new();
        for (at, volume) in asked.volumes.iter().enumerate() {
            if source_of(&volume.name, parts).is_some_and(|(part, _)| part.is(self)) {
                filled.push((format!("volumes[{at}].source"), volume.name.as_str()));
            }
            if let VolumeSource::Claim(ClaimSource { claim_name, create: Some(_), .. }) = &volume.source {
                let field = format!("volumes[{at}].source.claim.create");
                let same = parts.iter().flat_map(|part| &part.answer.customization.volumes).filter(|other| {
                    matches!(&other.source, VolumeSource::Claim(claim) if claim.claim_name == *claim_name)
                });
                filled.extend(same.map(|other| (field.clone(), other.name.as_str())));
            }
        }
        let patched = self.patch.volumes.iter().flatten();
        filled.extend(patched.map(|volume| ("pod_patch".to_owned(), volume.name.as_str())));
        let written = self.mounted_volumes().into_iter().filter(|mount| !mount.read_only);
        let written = written.filter(|mount| !is_written_by_the_lab(mount.volume, self, parts));
        filled.extend(written.map(|mount| (mount.field, mount.volume)));
        filled
    }

    /// The grants of this answer's containers that mount the volume.
    fn privileges_over(&self, volume: &str, parts: &[Part<'_>]) -> Vec<Grant> {
        let inits = &self.answer.customization.init_containers;
        let asked = inits
            .iter()
            .filter(|init| init.mounts.iter().any(|mount| mount.volume == volume))
            .map(|init| init.profile);
        let patched = self
            .patched_containers()
            .filter(|container| container.volume_mounts.iter().flatten().any(|mount| mount.name == volume));
        let patched = patched.filter_map(|container| owner_of(container, parts)).map(|(_, profile)| profile);
        asked.chain(patched).filter_map(grants::of_profile).collect()
    }

    fn is(&self, other: &Part<'_>) -> bool {
        std::ptr::eq(self.answer, other.answer)
    }

    /// The volumes that the answer mounts.
    fn mounted_volumes(&self) -> Vec<Mounted<'_>> {
        let asked = &self.answer.customization;
        let mount = |field: String, mount: &'a Mount| Mounted {
            field,
            volume: &mount.volume,
            read_only: mount.read_only,
        };
        let of_lab = asked.mounts.iter().enumerate();
        let mut mounted: Vec<_> =
            of_lab.map(|(at, asked)| mount(format!("mounts[{at}].volume"), asked)).collect();
        for (at, init) in asked.init_containers.iter().enumerate() {
            let of_init = init.mounts.iter().enumerate();
            mounted.extend(
                of_init.map(|(n, asked)| mount(format!("init_containers[{at}].mounts[{n}].volume"), asked)),
            );
        }
        let patched =
            self.patched_containers().flat_map(|container| container.volume_mounts.iter().flatten());
        mounted.extend(patched.map(|mount| Mounted {
            field: "pod_patch".to_owned(),
            volume: &mount.name,
            read_only: mount.read_only == Some(true),
        }));
        mounted
    }

    fn patched_containers(&self) -> impl Iterator<Item = &Container> {
        self.patch.containers.iter().chain(self.patch.init_containers.iter().flatten())
    }
}

/// A volume that an answer mounts, and the field that does.
struct Mounted<'a> {
    field: String,
    volume: &'a str,
    read_only: bool,
}

/// The author and the profile of an init container that a patch changes: of the last answer that has it.
fn owner_of<'a>(container: &Container, parts: &[Part<'a>]) -> Option<(&'a Author, SecurityProfile)> {
    parts.iter().rev().find_map(|part| {
        let mut inits = part.answer.customization.init_containers.iter();
        inits.find(|init| init.name == container.name).map(|init| (&part.answer.author, init.profile))
    })
}

/// The source of a volume, and the answer that gives it: the last one that has the volume.
fn source_of<'b, 'a>(volume: &str, parts: &'b [Part<'a>]) -> Option<(&'b Part<'a>, &'a VolumeSource)> {
    parts.iter().rev().find_map(|part| {
        let mut volumes = part.answer.customization.volumes.iter();
        Some((part, &volumes.find(|found| found.name == volume)?.source))
    })
}

/// True if another answer than `by` lets the lab, and so its user, write to the volume.
fn is_written_by_the_lab(volume: &str, by: &Part<'_>, parts: &[Part<'_>]) -> bool {
    let others = parts.iter().filter(|part| !part.is(by));
    let mut mounts = others.flat_map(|part| &part.answer.customization.mounts);
    mounts.any(|mount| mount.volume == volume && !mount.read_only)
}

/// The grants that the source of a volume needs, each with the policy that gave the volume this source. Patches are
/// merged into the source that the volume has, so what they set comes on top of it.
fn sources_of<'a>(volume: &str, parts: &[Part<'a>]) -> Vec<(&'a Author, Grant, String)> {
    let asked = source_of(volume, parts).and_then(|(part, source)| {
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
