//! The answers of a chain, with the volumes that they mount and the parts that they patch.

use k8s_openapi::DeepMerge as _;
use k8s_openapi::api::core::v1::{Container, PodSpec, Volume as PodVolume};

use super::storage::{Storage, VolumeStorage};
use crate::config::grants::Grant;
use crate::policy::{Author, ChainAnswer, Mount, SecurityProfile, VolumeSource, grants, pod_patch};

/// All answers, and the resulting volumes of the pod.
pub(super) struct Chain<'a> {
    pub(super) parts: Vec<Part<'a>>,
    volumes: Vec<PodVolume>,
}

/// An answer, and the pod spec of its patch, which is parsed once.
pub(super) struct Part<'a> {
    pub(super) answer: &'a ChainAnswer,
    pub(super) patch: PodSpec,
}

/// A volume that an answer mounts, and the field that mounts it.
pub(super) struct Mounted<'a> {
    pub(super) field: String,
    pub(super) volume: &'a str,
    pub(super) read_only: bool,
}

/// A volume that an answer mounts in a container that needs a grant.
pub(super) struct PrivilegedMount<'a> {
    pub(super) author: &'a Author,
    pub(super) container: &'a str,
    pub(super) grant: Grant,
    pub(super) volume: &'a str,
}

impl<'a> Chain<'a> {
    pub(super) fn from_answers(answers: &'a [ChainAnswer]) -> Self {
        let parts: Vec<Part<'a>> = answers.iter().map(Part::from_answer).collect();
        let volumes = volumes(&parts);
        Self { parts, volumes }
    }

    /// Returns the source of a volume, and the answer that sets it: the last one that has the volume.
    pub(super) fn source_of(&self, volume: &str) -> Option<(&Part<'a>, &'a VolumeSource)> {
        source_of(volume, &self.parts)
    }

    /// Returns the storage of the volume with this name.
    pub(super) fn storage_of(&self, volume: &str) -> Vec<VolumeStorage> {
        let found = self.volumes.iter().find(|found| found.name == volume);
        found.map(Storage::from_volume).unwrap_or_default()
    }

    /// Returns the answers that define the volume with this name: the one that sets its source, and those that patch
    /// it.
    pub(super) fn deciders_of(&self, volume: &str) -> Vec<&Part<'a>> {
        let source = self.source_of(volume).map(|(part, _)| part);
        let patching = self.parts.iter().filter(|part| part.patches_volume(volume));
        source.into_iter().chain(patching).collect()
    }

    /// Returns the author and the profile of an init container that a patch changes, from the last answer that has it.
    pub(super) fn owner_of(&self, container: &Container) -> Option<(&'a Author, SecurityProfile)> {
        self.parts.iter().rev().find_map(|part| {
            let mut inits = part.answer.customization.init_containers.iter();
            inits.find(|init| init.name == container.name).map(|init| (&part.answer.author, init.profile))
        })
    }

    /// Returns the volumes that all answers mount in containers that need a grant.
    pub(super) fn privileged_mounts(&self) -> Vec<PrivilegedMount<'_>> {
        self.parts.iter().flat_map(|part| part.privileged_mounts(self)).collect()
    }
}

/// Returns the volumes of the pod with all patches. If several answers have a volume of one name, the last one wins.
fn volumes(parts: &[Part<'_>]) -> Vec<PodVolume> {
    let mut merged: Vec<PodVolume> = Vec::new();
    for asked in parts.iter().flat_map(|part| &part.answer.customization.volumes) {
        merged.retain(|volume| volume.name != asked.name);
        merged.push(PodVolume::from(asked));
    }
    let mut spec = PodSpec { volumes: Some(merged), ..PodSpec::default() };
    for part in parts {
        spec.merge_from(PodSpec { volumes: part.patch.volumes.clone(), ..PodSpec::default() });
    }
    spec.volumes.unwrap_or_default()
}

fn source_of<'b, 'a>(volume: &str, parts: &'b [Part<'a>]) -> Option<(&'b Part<'a>, &'a VolumeSource)> {
    parts.iter().rev().find_map(|part| {
        let mut volumes = part.answer.customization.volumes.iter();
        Some((part, &volumes.find(|found| found.name == volume)?.source))
    })
}

impl<'a> Part<'a> {
    /// Parses the patch of an answer. An invalid patch was refused before.
    fn from_answer(answer: &'a ChainAnswer) -> Self {
        let patch = answer.customization.pod_patch.as_deref().and_then(|patch| pod_patch::parse(patch).ok());
        Self { answer, patch: patch.and_then(|pod| pod.spec).unwrap_or_default() }
    }

    pub(super) fn is(&self, other: &Part<'_>) -> bool {
        std::ptr::eq(self.answer, other.answer)
    }

    /// Returns the volumes that the answer mounts.
    pub(super) fn mounted_volumes(&self) -> Vec<Mounted<'_>> {
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

    pub(super) fn patched_containers(&self) -> impl Iterator<Item = &Container> {
        self.patch.containers.iter().chain(self.patch.init_containers.iter().flatten())
    }

    /// Returns the names of the volumes that the answer patches.
    pub(super) fn patched_volumes(&self) -> impl Iterator<Item = &str> {
        self.patch.volumes.iter().flatten().map(|volume| volume.name.as_str())
    }

    fn patches_volume(&self, volume: &str) -> bool {
        self.patched_volumes().any(|patched| patched == volume)
    }

    fn privileged_mounts<'b>(&'b self, chain: &'b Chain<'a>) -> Vec<PrivilegedMount<'b>> {
        let author = &self.answer.author;
        let mount = |container, grant, volume| PrivilegedMount { author, container, grant, volume };
        let mut mounts = Vec::new();
        for init in &self.answer.customization.init_containers {
            let Some(grant) = grants::of_profile(init.profile) else { continue };
            mounts.extend(
                init.mounts.iter().map(|asked| mount(init.name.as_str(), grant, asked.volume.as_str())),
            );
        }
        for container in self.patched_containers() {
            let profile = chain.owner_of(container).map(|(_, profile)| profile);
            let Some(grant) = profile.and_then(grants::of_profile) else { continue };
            let patched = container.volume_mounts.iter().flatten();
            mounts.extend(patched.map(|patched| mount(&container.name, grant, &patched.name)));
        }
        mounts
    }
}
