//! Binds claims at their first use by a pod, as storage classes with `WaitForFirstConsumer` do. The process runtime
//! creates a directory for each. No `PersistentVolume` objects are created, because nothing here reads them.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimStatus};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

/// Binds a claim that is not bound. Returns false if there is no such claim.
pub(crate) async fn bind(client: &Client, namespace: &str, name: &str) -> Result<bool, kube::Error> {
    let api: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let Some(claim) = api.get_opt(name).await? else { return Ok(false) };
    if claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound") {
        return Ok(true);
    }
    let (spec, params) = (claim.spec.unwrap_or_default(), PatchParams::default());
    if spec.volume_name.is_none() {
        let volume = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
        api.patch(name, &params, &Patch::Merge(json!({"spec": {"volumeName": volume}}))).await?;
    }
    let status = PersistentVolumeClaimStatus {
        phase: Some("Bound".to_owned()),
        access_modes: spec.access_modes,
        capacity: spec.resources.and_then(|resources| resources.requests),
        ..PersistentVolumeClaimStatus::default()
    };
    api.patch_status(name, &params, &Patch::Merge(json!({"status": status}))).await.map(|_| true)
}
