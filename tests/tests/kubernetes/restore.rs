//! A backup of the service's objects in Kubernetes, and its return after everything in the service's namespace was
//! lost.

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use serde_json::json;
use wasmspawner_tests::api::PREFIX;

use crate::labs::{gone, service, stop};
use crate::site::{Site, until};

/// The objects that `kubectl get spawns,configmaps -o yaml` has saved.
struct Backup {
    records: Vec<DynamicObject>,
    volumes: Vec<ConfigMap>,
}

impl Backup {
    async fn from_site(site: &Site) -> Self {
        let all = ListParams::default();
        let maps: Api<ConfigMap> = Api::namespaced(site.cluster.client.clone(), site.name());
        let volumes = maps.list(&all).await.unwrap().items.into_iter();
        let ours = |map: &ConfigMap| {
            map.metadata.name.as_deref().is_some_and(|name| name.starts_with("wasmspawner-volumes"))
        };
        Self {
            records: site.spawns().list(&all).await.unwrap().items,
            volumes: volumes.filter(ours).collect(),
        }
    }

    /// Deletes the saved objects, as if they were deleted from the cluster's own database.
    async fn lose(&self, site: &Site) {
        let records = site.spawns();
        for record in &self.records {
            let name = record.metadata.name.as_deref().unwrap();
            let without = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            records.patch(name, &PatchParams::default(), &without).await.unwrap();
            records.delete(name, &DeleteParams::default()).await.unwrap();
            gone(&records, name).await;
        }
        let maps: Api<ConfigMap> = Api::namespaced(site.cluster.client.clone(), site.name());
        for map in &self.volumes {
            let name = map.metadata.name.as_deref().unwrap();
            let without = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            maps.patch(name, &PatchParams::default(), &without).await.unwrap();
            maps.delete(name, &DeleteParams::default()).await.unwrap();
            gone(&maps, name).await;
        }
    }

    /// Creates the objects again. The cluster gives each object another uid.
    async fn restore(self, site: &Site) {
        let again = |old: ObjectMeta| ObjectMeta {
            name: old.name,
            labels: old.labels,
            annotations: old.annotations,
            finalizers: old.finalizers,
            ..ObjectMeta::default()
        };
        let maps: Api<ConfigMap> = Api::namespaced(site.cluster.client.clone(), site.name());
        for mut map in self.volumes {
            map.metadata = again(map.metadata);
            maps.create(&PostParams::default(), &map).await.unwrap();
        }
        for mut record in self.records {
            record.metadata = again(record.metadata);
            site.spawns().create(&PostParams::default(), &record).await.unwrap();
        }
    }
}

/// Volumes belong to their users again. A lab that ran is not continued, because its objects carry the uid of the lost
/// record. These objects are reported and left alone, until an administrator deletes them.
pub(crate) async fn volumes_return_and_labs_can_be_started_again(site: &Site, namespace: &str) {
    let mut service = service(site, "retain", namespace);
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(site.cluster.client.clone(), namespace);
    let home = claims.get("claim-ada").await.unwrap().metadata.uid;
    until(async || site.spawns().get("lab-ada").await.unwrap().data["status"]["readyAt"].is_string()).await;
    assert!(service.end().unwrap().success());

    let backup = Backup::from_site(site).await;
    assert_eq!((backup.records.len(), backup.volumes.len()), (1, 1));
    backup.lose(site).await;
    backup.restore(site).await;
    service.run().await.unwrap();

    until(async || ada.lab("ada").await.unwrap().status == 404).await;
    let admin = service.admin().unwrap();
    let orphans = format!("{PREFIX}/orphans");
    until(async || {
        let found = admin.get(&orphans).await.unwrap().json().unwrap();
        found.as_array().unwrap().iter().any(|orphan| orphan["name"] == "nb-ada")
    })
    .await;
    let deleted = admin.send(admin.request(http::Method::DELETE, &orphans)).await.unwrap();
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let pods: Api<Pod> = Api::namespaced(site.cluster.client.clone(), namespace);
    gone(&pods, "nb-ada").await;

    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(claims.get("claim-ada").await.unwrap().metadata.uid, home, "the same files");
    stop(&service, "ada").await;
    let hub = service.hub().unwrap();
    let released =
        hub.send(hub.request(http::Method::DELETE, &format!("{PREFIX}/labs/ada/volumes"))).await.unwrap();
    assert_eq!(released.status, 200, "{released:?}");
    gone(&claims, "claim-ada").await;
}
