use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::metadata;
use crate::policy::{AccessMode, ClaimTemplate, Pair, ValidatedSpawn, VolumeSource};
use crate::users::quota::Quantity;

/// Builds the volume claims that are created if they do not exist. Of an existing claim only the size changes, to a larger
/// one: most of its fields are immutable, and its data belongs to the user.
pub(super) fn build(spawn: &ValidatedSpawn) -> Vec<PersistentVolumeClaim> {
    let templates = spawn.volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Claim(claim) => Some((claim.claim_name.as_str(), claim.create.as_ref()?)),
        _ => None,
    });
    // Two volumes may use the same claim, which must be created only once.
    templates
        .map(|(name, template)| (name, claim(spawn, name, template)))
        .collect::<BTreeMap<_, _>>()
        .into_values()
        .collect()
}

fn claim(spawn: &ValidatedSpawn, name: &str, template: &ClaimTemplate) -> PersistentVolumeClaim {
    let modes = if template.access_modes.is_empty() {
        &[AccessMode::ReadWriteOnce][..]
    } else {
        &template.access_modes
    };
    let storage = Quantity::bytes(template.storage_bytes).into();
    PersistentVolumeClaim {
        metadata: claim_metadata(spawn, name, template),
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(modes.iter().map(|mode| access_mode(*mode).to_owned()).collect()),
            storage_class_name: template.storage_class.clone(),
            selector: selector(&template.selector),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), storage)])),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

fn selector(labels: &[Pair]) -> Option<LabelSelector> {
    (!labels.is_empty())
        .then(|| LabelSelector { match_labels: Some(map(labels)), ..LabelSelector::default() })
}

fn map(pairs: &[Pair]) -> BTreeMap<String, String> {
    pairs.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect()
}

/// Builds the metadata of a claim. A claim outlives labs, so it has the labels of the user and not of one lab.
fn claim_metadata(spawn: &ValidatedSpawn, name: &str, template: &ClaimTemplate) -> ObjectMeta {
    let ours = metadata::of_user(spawn, &spawn.names.pvc);
    let below = |mut theirs: BTreeMap<String, String>, ours: Option<BTreeMap<String, String>>| {
        theirs.extend(ours.unwrap_or_default());
        Some(theirs)
    };
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: below(map(&template.labels), ours.labels),
        annotations: below(map(&template.annotations), ours.annotations),
        ..ours
    }
}

fn access_mode(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::ReadWriteOnce => "ReadWriteOnce",
        AccessMode::ReadOnlyMany => "ReadOnlyMany",
        AccessMode::ReadWriteMany => "ReadWriteMany",
        AccessMode::ReadWriteOncePod => "ReadWriteOncePod",
    }
}
