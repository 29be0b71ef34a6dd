use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, KeyToPath, SecretVolumeSource, Volume as PodVolume, VolumeMount,
};

use super::{certificate, nss_config_map, secret};
use crate::policy::compose::CERTIFICATE_PATH;
use crate::policy::{Mount, ValidatedSpawn};

/// Names of the volumes that the service adds. Policies cannot use their prefix.
const NSS: &str = "wasmspawner-nss";
const SECRETS: &str = "wasmspawner-secrets";
const CERTIFICATE: &str = "wasmspawner-tls";

/// Returns all volumes of the pod: first the service's own, then those of policies.
pub(super) fn volumes(spawn: &ValidatedSpawn) -> Vec<PodVolume> {
    let mut volumes = vec![PodVolume {
        name: NSS.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: spawn.names.nss.to_string(),
            ..ConfigMapVolumeSource::default()
        }),
        ..PodVolume::default()
    }];
    if spawn.config.secrets_path.is_some() {
        let items = secret::file_keys(spawn).into_iter();
        volumes.push(PodVolume {
            name: SECRETS.to_owned(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(spawn.names.object.to_string()),
                items: Some(items.map(|key| KeyToPath { path: key.clone(), key, mode: None }).collect()),
                ..SecretVolumeSource::default()
            }),
            ..PodVolume::default()
        });
    }
    if spawn.serves_tls {
        volumes.push(PodVolume {
            name: CERTIFICATE.to_owned(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(certificate::secret_name(&spawn.names)),
                ..SecretVolumeSource::default()
            }),
            ..PodVolume::default()
        });
    }
    volumes.extend(spawn.volumes.iter().map(PodVolume::from));
    volumes
}

/// Returns the mounts of `/etc/passwd` and `/etc/group`, which contain the lab's user.
pub(super) fn user_files() -> [VolumeMount; 2] {
    [nss_config_map::PASSWD, nss_config_map::GROUP].map(|key| file(key.to_owned(), format!("/etc/{key}")))
}

/// Returns the mount of one key of the lab's `ConfigMap` of files.
fn file(key: String, path: String) -> VolumeMount {
    VolumeMount {
        name: NSS.to_owned(),
        mount_path: path,
        sub_path: Some(key),
        read_only: Some(true),
        ..VolumeMount::default()
    }
}

/// Returns all mounts of the lab's container.
pub(super) fn lab_mounts(spawn: &ValidatedSpawn) -> Vec<VolumeMount> {
    let mut mounts = Vec::from(user_files());
    let read_only = |name: &str, path: &str| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    };
    mounts.extend(spawn.config.secrets_path.iter().map(|path| read_only(SECRETS, path)));
    mounts.extend(spawn.serves_tls.then(|| read_only(CERTIFICATE, CERTIFICATE_PATH)));
    mounts.extend(spawn.mounts.iter().map(mount));
    let files = spawn.config.files.keys().enumerate();
    mounts.extend(files.map(|(at, path)| file(nss_config_map::file_key(at), path.clone())));
    mounts
}

pub(super) fn mount(mount: &Mount) -> VolumeMount {
    VolumeMount {
        name: mount.volume.clone(),
        mount_path: mount.path.clone(),
        sub_path: mount.sub_path.clone(),
        read_only: mount.read_only.then_some(true),
        ..VolumeMount::default()
    }
}
