//! The size of an existing claim, compared with the size that a lab asks for.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::owner;
use crate::names::labels::{INSTANCE_LABEL, MANAGED_BY_LABEL};
use crate::users::quota::Quantity;

/// A claim that is smaller than a lab asks for. A claim never shrinks, so a larger one is not among these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The name of the claim.
    pub name: String,
    /// The size that the claim requests, as it is written there.
    pub from: String,
    /// The size that the lab asks for.
    pub to: String,
    /// Why the claim cannot be enlarged by the service; `None` if the cluster can be asked.
    pub obstacle: Option<&'static str>,
}

impl Growth {
    /// Compares an existing claim with the one that the lab would create. `None` if the claim is large enough.
    pub fn needed(found: &PersistentVolumeClaim, wanted: &PersistentVolumeClaim) -> Option<Self> {
        let (from, to) = (size(found)?, size(wanted)?);
        let smaller = from.parse::<Quantity>().ok()? < to.parse::<Quantity>().ok()?;
        smaller.then(|| Self {
            name: found.metadata.name.clone().unwrap_or_default(),
            from: from.to_owned(),
            to: to.to_owned(),
            obstacle: obstacle(found, wanted),
        })
    }
}

fn size(claim: &PersistentVolumeClaim) -> Option<&str> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    requests.get("storage").map(|size| size.0.as_str())
}

fn obstacle(found: &PersistentVolumeClaim, wanted: &PersistentVolumeClaim) -> Option<&'static str> {
    if !is_from_this_service(&found.metadata, &wanted.metadata) {
        return Some(
            "it was not created for this user by this service, so an administrator has to enlarge it",
        );
    }
    let phase = found.status.as_ref().and_then(|status| status.phase.as_deref());
    // Kubernetes enlarges bound claims only.
    (phase != Some("Bound")).then_some("it is not bound to a volume yet; a later start enlarges it")
}

/// True if this installation of the service has created the claim, for the same user.
fn is_from_this_service(found: &ObjectMeta, wanted: &ObjectMeta) -> bool {
    let label = |metadata: &ObjectMeta, key: &str| {
        metadata.labels.as_ref().and_then(|labels: &BTreeMap<_, _>| labels.get(key).cloned())
    };
    let same = |key: &str| label(found, key).is_some() && label(found, key) == label(wanted, key);
    same(MANAGED_BY_LABEL) && same(INSTANCE_LABEL) && owner(found).is_some() && owner(found) == owner(wanted)
}

/// Describes what keeps a claim that is being deleted, for messages; `None` if that is not known.
pub fn kept_by(claim: &ObjectMeta) -> Option<String> {
    let finalizers = claim.finalizers.as_deref().unwrap_or_default();
    if finalizers.iter().any(|finalizer| finalizer == "kubernetes.io/pvc-protection") {
        return Some("a pod may still use it".to_owned());
    }
    (!finalizers.is_empty()).then(|| format!("the finalizer {} keeps it", finalizers.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(size: &str, change: impl FnOnce(&mut Value)) -> PersistentVolumeClaim {
        let mut claim = json!({
            "metadata": {
                "name": "claim-ada",
                "labels": {"app.kubernetes.io/managed-by": "wasmspawner", "wasmspawner.io/instance": "a"},
                "annotations": {"wasmspawner.io/username": "ada"},
            },
            "spec": {"resources": {"requests": {"storage": size}}},
            "status": {"phase": "Bound"},
        });
        change(&mut claim);
        serde_json::from_value(claim).unwrap()
    }

    fn needed(found: &PersistentVolumeClaim, to: &str) -> Option<Growth> {
        Growth::needed(found, &claim(to, |_| {}))
    }

    #[test]
    fn a_claim_grows_and_never_shrinks() {
        for (from, to, grows) in [
            ("1Gi", "2Gi", true),
            ("1Gi", "1Gi", false),
            ("1024Mi", "1Gi", false),
            ("2Gi", "1Gi", false),
            ("1G", "1Gi", true),
            ("1Gi", "1G", false),
        ] {
            let growth = needed(&claim(from, |_| {}), to);
            let expected =
                Growth { name: "claim-ada".into(), from: from.into(), to: to.into(), obstacle: None };
            assert_eq!(growth, grows.then_some(expected), "{from} to {to}");
        }
        let unreadable = claim("a lot", |_| {});
        assert_eq!(needed(&unreadable, "2Gi"), None);
    }

    /// Each row changes one field of a claim that could grow.
    #[test]
    fn a_claim_that_is_not_the_user_s_own_of_this_installation_is_left_alone() {
        for (pointer, value) in [
            ("/metadata/labels/app.kubernetes.io~1managed-by", json!("kubespawner")),
            ("/metadata/labels/wasmspawner.io~1instance", json!("b")),
            ("/metadata/annotations/wasmspawner.io~1username", json!("eve")),
            ("/metadata/labels", json!({})),
            ("/metadata/annotations", json!({})),
        ] {
            let found = claim("1Gi", |claim| *claim.pointer_mut(pointer).unwrap() = value);
            let obstacle = needed(&found, "2Gi").unwrap().obstacle.unwrap();
            assert!(
                obstacle.contains("was not created for this user by this service"),
                "{pointer}: {obstacle}"
            );
        }
        let found = claim("1Gi", |claim| claim["status"]["phase"] = json!("Pending"));
        assert!(needed(&found, "2Gi").unwrap().obstacle.unwrap().contains("not bound"));
    }

    #[test]
    fn the_reason_why_a_claim_is_still_there_is_in_its_finalizers() {
        let with = |finalizers: &[&str]| {
            let finalizers = finalizers.iter().map(|&name| name.to_owned()).collect();
            kept_by(&ObjectMeta { finalizers: Some(finalizers), ..ObjectMeta::default() })
        };
        assert_eq!(with(&[]), None);
        assert_eq!(
            with(&["example.org/backup"]).as_deref(),
            Some("the finalizer example.org/backup keeps it")
        );
        let protection = "kubernetes.io/pvc-protection";
        assert_eq!(with(&["a/b", protection]).as_deref(), Some("a pod may still use it"));
    }
}
