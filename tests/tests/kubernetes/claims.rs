//! Volume claims whose size changes in the configuration.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::events::Event;
use wasmspawner_tests::kubernetes::SKIPPED;
use wasmspawner_tests::service::Service;

use crate::labs::{assert_permitted, service_with, stop};
use crate::site::{ONE_NAMESPACE, Site};

/// The service may do this with exactly the permissions and the admission policy of `deploy`.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_grows_where_its_class_allows_it_and_the_user_is_told_where_not() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let classes: Api<StorageClass> = Api::all(site.cluster.client.clone());
    let class = |suffix: &str| format!("{}-{suffix}", site.name());
    for (suffix, grows) in [("grows", true), ("fixed", false)] {
        let class = json!({
            "metadata": { "name": class(suffix) },
            "provisioner": "example.org/nothing",
            "allowVolumeExpansion": grows,
        });
        classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
    }
    let labs = site.namespace("labs").await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(site.cluster.client.clone(), &labs);
    let mut service = service_with(&site, "single", &labs, |_| {});
    for (user, class, grows) in [("ada", class("grows"), true), ("grace", class("fixed"), false)] {
        let first = lab(&mut service, user, &class, "1Gi").await;
        assert_eq!(told(&first), Vec::<&str>::new(), "{first:#?}");
        let larger = lab(&mut service, user, &class, "2Gi").await;
        let requested = async || {
            let claim = claims.get(&format!("claim-{user}")).await.unwrap();
            claim.spec.unwrap().resources.unwrap().requests.unwrap()["storage"].0.clone()
        };
        if grows {
            assert_eq!(told(&larger), ["info: The volume claim-ada grows from 1Gi to 2Gi"]);
            assert_eq!(requested().await, "2Gi");
            let smaller = lab(&mut service, user, &class, "1Gi").await;
            assert_eq!(told(&smaller), Vec::<&str>::new(), "{smaller:#?}");
            assert_eq!(requested().await, "2Gi", "a claim never shrinks");
        } else {
            let why = "error: The volume claim-grace has 1Gi and not the 2Gi of this site: its storage class does not allow volumes to grow (allowVolumeExpansion)";
            assert_eq!(told(&larger), [why]);
            assert_eq!(requested().await, "1Gi");
        }
    }
    a_foreign_claim_keeps_its_size(&site, &labs, &class("grows")).await;
    for suffix in ["grows", "fixed"] {
        classes.delete(&class(suffix), &DeleteParams::default()).await.unwrap();
    }
    assert_permitted(&service);
    site.leave().await;
}

/// The account cannot enlarge the claim of somebody else, whoever uses its token.
async fn a_foreign_claim_keeps_its_size(site: &Site, labs: &str, class: &str) {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(site.cluster.client.clone(), labs);
    let theirs = json!({
        "metadata": { "name": "theirs" },
        "spec": {
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    claims.create(&PostParams::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();
    let (params, bound) = (PatchParams::default(), Patch::Merge(json!({ "status": { "phase": "Bound" } })));
    claims.patch_status("theirs", &params, &bound).await.unwrap();
    let stolen: Api<PersistentVolumeClaim> = Api::namespaced(site.account_s_client().await, labs);
    let larger = Patch::Merge(json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } }));
    let refused = stolen.patch("theirs", &params, &larger).await.unwrap_err().to_string();
    assert!(refused.contains("does not carry the labels of this installation"), "{refused}");
}

/// Starts and stops a lab whose home is a claim of this class and size. Returns the events of its start.
async fn lab(service: &mut Service, user: &str, class: &str, size: &str) -> Vec<Event> {
    let mut config: Value = serde_json::from_slice(&std::fs::read(service.config_file()).unwrap()).unwrap();
    let create = &mut config["policies"][0]["config"]["volumes"][0]["claim"]["create"];
    (create["storage"], create["storage_class"]) = (json!(size), json!(class));
    std::fs::write(service.config_file(), config.to_string()).unwrap();
    service.crash_and_restart().await.unwrap();
    let events = service.user(user).unwrap().spawn_to_end(user).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    stop(service, user).await;
    events
}

/// The events about volumes.
fn told(events: &[Event]) -> Vec<String> {
    let about_volumes = events.iter().filter(|event| event.data.contains("The volume"));
    about_volumes.map(|event| format!("{}: {}", event.kind, event.data)).collect()
}
