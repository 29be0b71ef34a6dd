use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::metadata;
use crate::policy::ValidatedSpawn;

/// Builds the Secret with the site's registry credential, with which the kubelet pulls images.
pub(super) fn build(spawn: &ValidatedSpawn) -> Option<Secret> {
    let credential = spawn.pull_secret.as_ref()?;
    Some(Secret {
        metadata: metadata::of_lab(spawn, &spawn.names.pull_secret),
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        data: Some(BTreeMap::from([(
            ".dockerconfigjson".to_owned(),
            ByteString(credential.expose().to_vec()),
        )])),
        ..Secret::default()
    })
}
