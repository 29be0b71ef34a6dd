//! Converts volumes to those of Kubernetes.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, HostPathVolumeSource, KeyToPath, NFSVolumeSource,
    PersistentVolumeClaimVolumeSource, SecretVolumeSource, Volume as PodVolume,
};

use super::{ObjectSource, Volume, VolumeSource};
use crate::users::quota::Quantity;

impl From<&Volume> for PodVolume {
    fn from(volume: &Volume) -> Self {
        let named = Self { name: volume.name.clone(), ..Self::default() };
        match &volume.source {
            VolumeSource::Nfs(nfs) => Self {
                nfs: Some(NFSVolumeSource {
                    server: nfs.server.clone(),
                    path: nfs.path.clone(),
                    read_only: nfs.read_only.then_some(true),
                }),
                ..named
            },
            VolumeSource::Claim(claim) => Self {
                persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                    claim_name: claim.claim_name.clone(),
                    read_only: claim.read_only.then_some(true),
                }),
                ..named
            },
            VolumeSource::ConfigMap(object) => Self {
                config_map: Some(ConfigMapVolumeSource {
                    name: object.name.clone(),
                    optional: object.optional.then_some(true),
                    items: items(object),
                    default_mode: mode(object),
                }),
                ..named
            },
            VolumeSource::Secret(object) => Self {
                secret: Some(SecretVolumeSource {
                    secret_name: Some(object.name.clone()),
                    optional: object.optional.then_some(true),
                    items: items(object),
                    default_mode: mode(object),
                }),
                ..named
            },
            VolumeSource::EmptyDir(dir) => Self {
                empty_dir: Some(EmptyDirVolumeSource {
                    medium: dir.memory.then(|| "Memory".to_owned()),
                    size_limit: dir.size_limit_bytes.map(|bytes| Quantity::bytes(bytes).into()),
                }),
                ..named
            },
            VolumeSource::HostPath(path) => {
                Self { host_path: Some(HostPathVolumeSource { path: path.clone(), type_: None }), ..named }
            }
        }
    }
}

fn items(object: &ObjectSource) -> Option<Vec<KeyToPath>> {
    let item =
        |(key, path): &(String, String)| KeyToPath { key: key.clone(), path: path.clone(), mode: None };
    (!object.items.is_empty()).then(|| object.items.iter().map(item).collect())
}

/// Returns the file mode, which was checked to be at most 0o777.
fn mode(object: &ObjectSource) -> Option<i32> {
    object.mode.and_then(|mode| i32::try_from(mode).ok())
}
