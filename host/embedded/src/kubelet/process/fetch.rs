//! Reads the `ConfigMap`s and Secrets a pod refers to.

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};

use crate::kubelet::env::{Needs, References};

/// What exists of the needed objects; one request each, all at once.
pub(super) async fn fetch(
    client: &Client,
    namespace: &str,
    needs: &Needs,
) -> Result<References, kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let (maps, secrets) = futures::try_join!(
        try_join_all(needs.config_maps.iter().map(|name| maps.get_opt(name))),
        try_join_all(needs.secrets.iter().map(|name| secrets.get_opt(name))),
    )?;
    let found = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
    Ok(References {
        config_maps: found(&needs.config_maps)
            .into_iter()
            .zip(maps)
            .filter_map(|(n, o)| Some((n, o?)))
            .collect(),
        secrets: found(&needs.secrets).into_iter().zip(secrets).filter_map(|(n, o)| Some((n, o?))).collect(),
    })
}
