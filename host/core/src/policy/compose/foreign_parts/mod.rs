//! Checks that a policy uses parts of other policies in the chain only within the limits of its own grants.
//!
//! Every part of the pod has an author. A reference passes privileges in one direction or the other: a container gets
//! those of the volume that it mounts, and a patch acts with those of the container that it changes. The author of the
//! part that refers therefore needs the grants of the other. Without this check, a policy without grants could mount a
//! host directory that was granted to another policy, change the command of another policy's privileged container, or
//! replace the volume that holds that command.

mod chain;
mod content;
mod storage;

use super::{ChainAnswer, SpawnRejected};
use crate::config::grants::{Grant, Need};
use crate::policy::lifted::LiftRules;
use crate::policy::{Author, FieldError, grants, pod_patch};
use chain::{Chain, Mounted, Part};

/// Checks every answer against the others.
pub(super) fn check(answers: &[ChainAnswer], lifts: LiftRules<'_>) -> Result<(), SpawnRejected> {
    let chain = Chain::from_answers(answers);
    for part in &chain.parts {
        let answer = part.answer;
        let denied =
            needs(part, &chain).into_iter().filter_map(|need| lifts.cover(&answer.grants, need).err());
        let mut errors: Vec<_> = denied
            .map(|need| {
                let violation = need.violated_by(&answer.author);
                FieldError::new(violation.field.clone(), violation.to_string())
            })
            .collect();
        errors.extend(content::errors(part, &chain));
        if !errors.is_empty() {
            return Err(SpawnRejected::by(&answer.author, errors));
        }
    }
    Ok(())
}

/// Returns the grants that an answer needs because it mounts volumes of other policies, or patches their containers.
fn needs(part: &Part<'_>, chain: &Chain<'_>) -> Vec<Need> {
    let own = &part.answer.author;
    let mut needs = Vec::new();
    for Mounted { field, volume, .. } in part.mounted_volumes() {
        let foreign = sources_of(volume, chain).into_iter().filter(|(author, ..)| *author != own);
        let need = |(_, grant, wanted)| Need { field: field.clone(), grant, wanted: Some(wanted) };
        needs.extend(foreign.map(need));
    }
    for container in part.patched_containers() {
        let foreign = chain.owner_of(container).filter(|(author, _)| *author != own);
        let grant = foreign.and_then(|(_, profile)| grants::of_profile(profile));
        let field = "pod_patch".to_owned();
        needs.extend(grant.map(|grant| Need { field, grant, wanted: None }));
    }
    needs
}

/// Returns the grants that the source of a volume needs, each with the policy that gave the volume this source. Patches
/// are merged into the source of the volume, so their settings are added to it.
fn sources_of<'a>(volume: &str, chain: &Chain<'a>) -> Vec<(&'a Author, Grant, String)> {
    let asked = chain.source_of(volume).and_then(|(part, source)| {
        grants::of_source(source).map(|(_, grant, wanted)| (&part.answer.author, grant, wanted))
    });
    let patched = chain.parts.iter().flat_map(|part| {
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
