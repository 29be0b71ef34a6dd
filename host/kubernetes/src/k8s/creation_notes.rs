//! Notes about the volume claims of a lab that is being created, for its user and for the log.

use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use wasmspawner_core::lifecycle::{ClaimSizes, CreationNote};
use wasmspawner_core::record::volumes::{Growth, kept_by};

use super::{Causes, KubernetesError, StatusReason};

/// Receives the notes about a creation.
pub struct CreationNotes<'a>(Option<&'a (dyn Fn(CreationNote) + Send + Sync)>);

impl<'a> CreationNotes<'a> {
    /// Receives nothing, for creations without volume claims.
    pub const NONE: Self = Self(None);

    /// Gives each note to `receive`.
    pub fn new(receive: &'a (dyn Fn(CreationNote) + Send + Sync)) -> Self {
        Self(Some(receive))
    }

    fn send(&self, note: CreationNote) {
        if let Some(receive) = self.0 {
            receive(note);
        }
    }

    pub(super) fn grows(&self, growth: Growth) {
        let sizes = sizes(growth);
        let ClaimSizes { name, from, to } = &sizes;
        tracing::info!(claim = name, from, to, "a volume claim grows");
        self.send(CreationNote::ClaimGrows(sizes));
    }

    pub(super) fn not_grown(&self, growth: Growth, why: String) {
        let sizes = sizes(growth);
        let ClaimSizes { name, from, to } = &sizes;
        tracing::warn!(claim = name, from, to, why, "a volume claim stays smaller than configured");
        self.send(CreationNote::ClaimNotGrown(sizes, why));
    }
}

fn sizes(growth: Growth) -> ClaimSizes {
    let Growth { name, from, to, .. } = growth;
    ClaimSizes { name, from, to }
}

/// The wait for the deletion of a volume claim, which is noted when it begins and when it ends.
pub(super) struct ClaimWait<'a> {
    name: &'a str,
    notes: &'a CreationNotes<'a>,
    /// Set when the wait begins, to what keeps the claim.
    begun: OnceLock<Option<String>>,
}

impl<'a> ClaimWait<'a> {
    pub(super) fn new(name: &'a str, notes: &'a CreationNotes<'a>) -> Self {
        Self { name, notes, begun: OnceLock::new() }
    }

    /// True if the claim is being deleted.
    pub(super) fn is_needed(&self, claim: &ObjectMeta) -> bool {
        let needed = claim.deletion_timestamp.is_some();
        if needed && self.begun.set(kept_by(claim)).is_ok() {
            let (name, kept_by) = (self.name.to_owned(), kept_by(claim));
            self.notes.send(CreationNote::WaitsForClaim { name, kept_by });
        }
        needed
    }

    /// Ends the wait, if it has begun: the claim is gone.
    pub(super) fn over(&self) {
        if self.begun.get().is_some() {
            self.notes.send(CreationNote::ClaimGone(self.name.to_owned()));
        }
    }

    /// The failure of a wait for which no time is left.
    pub(super) fn in_vain(&self) -> KubernetesError {
        let kept_by = self.begun.get().cloned().flatten();
        KubernetesError::ClaimBeingDeleted { name: self.name.to_owned(), kept_by }
    }
}

/// Says why the cluster does not enlarge a claim, in words for the lab's user.
pub(super) fn obstacle(error: &KubernetesError) -> String {
    match error {
        KubernetesError::Refused { message, .. } if message.contains("must support resize") => {
            "its storage class does not allow volumes to grow (allowVolumeExpansion)".to_owned()
        }
        KubernetesError::Refused { reason: StatusReason::Forbidden, message, .. }
            if message.contains("cannot patch resource") =>
        {
            "the service has no permission to enlarge it (patch persistentvolumeclaims)".to_owned()
        }
        KubernetesError::Refused { message, .. } => format!("the cluster refuses to enlarge it ({message})"),
        error => format!("the cluster could not enlarge it; the next start tries again ({})", Causes(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of Kubernetes 1.36.
    #[test]
    fn the_reason_why_a_claim_keeps_its_size_is_told_in_words() {
        let refused = |message: &str| {
            let message = format!("persistentvolumeclaims \"claim-ada\" is forbidden: {message}");
            let action = "enlarge PersistentVolumeClaim claim-ada".to_owned();
            obstacle(&KubernetesError::Refused { action, reason: StatusReason::Forbidden, message })
        };
        let class = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
        let account = "User \"system:serviceaccount:a:b\" cannot patch resource \"persistentvolumeclaims\" in API group \"\"";
        let quota = "exceeded quota: labs, requested: requests.storage=1Gi";
        for (message, expected) in [
            (class, "its storage class does not allow volumes to grow"),
            (account, "the service has no permission to enlarge it"),
            (
                quota,
                "the cluster refuses to enlarge it (persistentvolumeclaims \"claim-ada\" is forbidden: exceeded quota",
            ),
        ] {
            assert!(refused(message).starts_with(expected), "{}", refused(message));
        }
        let away = KubernetesError::StillBeingDeleted { action: "x".to_owned() };
        assert!(obstacle(&away).starts_with("the cluster could not enlarge it; the next start tries again"));
    }
}
