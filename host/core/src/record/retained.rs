//! Objects that stay on purpose when labs end, and the reasons for it.

use std::collections::BTreeMap;
use std::fmt;

use crate::custom_resource::environment::{Overview, TargetPhase};
use crate::names::lab::LabKey;
use crate::policy::ClaimReclaim;
use crate::record::volumes::VolumeRecord;

/// An object that stays on purpose when labs end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RetainedObject {
    /// The kind of the object.
    pub kind: RetainedKind,
    /// The Secret with the credentials for the object's cluster; `None` for the service's own cluster.
    pub cluster: Option<String>,
    /// The namespace of the object; `None` for a namespace.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
    /// The owners: `USER` or `USER/SERVER` for each server that has used the object, sorted. Empty if nobody owns it.
    pub owners: Vec<String>,
    /// True while a lab uses the object.
    pub in_use: bool,
    /// The reason why the object stays.
    pub reason: RetainedReason,
}

/// The kind of an object that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetainedKind {
    /// A namespace of labs.
    Namespace,
    /// A volume claim.
    PersistentVolumeClaim,
    /// A target, with its namespace.
    DeploymentTarget,
}

/// The reason why an object stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetainedReason {
    /// The service deletes no namespaces.
    NamespacesStay,
    /// The policy requires that the claim stays.
    Retained,
    /// The claim is deleted with the last server that has used it.
    UntilServerIsDeleted,
    /// The target was released, and is kept for its owner.
    Released,
    /// The target is ready for the next claim of its class.
    Ready,
}

impl RetainedReason {
    /// Returns a word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NamespacesStay => "namespaces_stay",
            Self::Retained => "retained",
            Self::UntilServerIsDeleted => "until_server_is_deleted",
            Self::Released => "released",
            Self::Ready => "ready",
        }
    }
}

/// Writes a sentence for people, which says what would delete the object.
impl fmt::Display for RetainedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NamespacesStay => "the service deletes no namespaces (`kubernetes.namespaces`); delete it by hand",
            Self::Retained => "the policy keeps it (`on_server_deletion: retain`); delete it by hand",
            Self::UntilServerIsDeleted => {
                "JupyterHub deletes it with the last server that has used it; `wasmspawner labs volumes USER/SERVER \
                 --release` does the same"
            }
            Self::Released => {
                "it is kept for its owner; `wasmspawner environments release` gives it to everybody, `retire` removes it"
            }
            Self::Ready => "it is ready for the next lab of its class; `wasmspawner environments retire` removes it",
        })
    }
}

/// Returns the claims that servers keep while they have no lab. `has_lab` tells whether a server has one.
pub fn retained_claims<'a>(
    records: impl Iterator<Item = &'a VolumeRecord>,
    has_lab: impl Fn(&LabKey) -> bool,
) -> Vec<RetainedObject> {
    let mut kept: BTreeMap<(&str, &str), RetainedObject> = BTreeMap::new();
    for record in records {
        for claim in &record.claims {
            let place = (claim.namespace.as_str(), claim.name.as_str());
            let known = kept.entry(place).or_insert_with(|| RetainedObject {
                kind: RetainedKind::PersistentVolumeClaim,
                cluster: None,
                namespace: Some(claim.namespace.to_string()),
                name: claim.name.to_string(),
                owners: Vec::new(),
                in_use: false,
                reason: RetainedReason::UntilServerIsDeleted,
            });
            known.owners.push(record.key.to_string());
            known.in_use |= has_lab(&record.key);
            if claim.reclaim == ClaimReclaim::Retain {
                known.reason = RetainedReason::Retained;
            }
        }
    }
    kept.into_values()
        .map(|mut claim| {
            claim.owners.sort();
            claim
        })
        .collect()
}

/// Returns the targets that have no claim and that nothing removes.
pub fn retained_targets(environments: Overview) -> Vec<RetainedObject> {
    let kept = environments.targets.into_iter().filter_map(|target| {
        let reason = match target.phase? {
            TargetPhase::Released => RetainedReason::Released,
            TargetPhase::Available => RetainedReason::Ready,
            TargetPhase::Pending | TargetPhase::Bound | TargetPhase::Failed => return None,
        };
        (!target.deleting).then(|| RetainedObject {
            kind: RetainedKind::DeploymentTarget,
            cluster: target.cluster,
            namespace: target.namespace,
            name: target.name,
            owners: target.owner.into_iter().collect(),
            in_use: false,
            reason,
        })
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(yaml: &str) -> VolumeRecord {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_claim_is_told_once_with_all_its_owners_and_the_reason_that_keeps_it_longest() {
        let records = [
            record(
                "{user: ada, server: gpu, namespace: labs, pvc: claim-ada, claims: [
                {namespace: labs, name: claim-ada, reclaim: delete}, {namespace: labs, name: data, reclaim: retain}]}",
            ),
            record(
                "{user: ada, server: '', namespace: labs, pvc: claim-ada, claims: [
                {namespace: labs, name: claim-ada, reclaim: delete}, {namespace: labs, name: data, reclaim: delete}]}",
            ),
        ];
        let kept = retained_claims(records.iter(), |key| key.server.as_str() == "gpu");
        let told: Vec<_> = kept
            .iter()
            .map(|claim| (claim.name.as_str(), claim.owners.join(" "), claim.in_use, claim.reason))
            .collect();
        assert_eq!(
            told,
            [
                ("claim-ada", "ada ada/gpu".to_owned(), true, RetainedReason::UntilServerIsDeleted),
                ("data", "ada ada/gpu".to_owned(), true, RetainedReason::Retained),
            ]
        );
        assert!(!retained_claims(records.iter(), |_| false)[0].in_use);
    }
}
