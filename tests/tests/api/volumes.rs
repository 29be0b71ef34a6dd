//! `/labs/{username}/volumes`, and the claims in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

use crate::BINARY;

/// Labs with a claim, in a retained namespace.
fn with_claims(claim: &str, reclaim: &str) -> impl Fn(&mut Value) {
    let config = json!({
        "volumes": [{"name": "home", "claim": {"name": claim, "create": {
            "storage": "1Gi",
            "storage_class": "fast",
            "access_modes": ["ReadWriteMany"],
            "labels": {"tier": "home"},
            "annotations": {"example.org/owner": "team"},
            "selector": {"kind": "ssd"},
            "on_server_deletion": reclaim,
        }}}],
        "mounts": [{"volume": "home", "path": "/home/ada"}],
    });
    move |service| {
        service["kubernetes"] = json!({"namespaces": "retain"});
        service["names"] = json!({"namespace": "labs"});
        service["lab"] = json!({"image": "lab:1"});
        service["policies"] = json!([{
            "name": "default", "path": guests::component("policy-default"), "config": config,
            "grants": { "metadata": ["example.org/"] },
        }]);
    }
}

async fn run(client: &Client, lab: &str) {
    let events = client.spawn_to_end(lab).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}

async fn stop(client: &Client, lab: &str) {
    assert_eq!(client.stop(lab).await.unwrap().status, 202);
    client.events(lab).await.unwrap().to_end().await.unwrap();
}

async fn claims_of(service: &Service) -> Api<PersistentVolumeClaim> {
    Api::namespaced(service.cluster().await.unwrap(), "labs")
}

async fn names(claims: &Api<PersistentVolumeClaim>) -> BTreeSet<String> {
    let list = claims.list(&ListParams::default()).await.unwrap();
    list.items.into_iter().filter_map(|claim| claim.metadata.name).collect()
}

/// Creates the namespace of labs with claims, before the first lab.
async fn claims_before_labs(service: &Service) -> Api<PersistentVolumeClaim> {
    let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
    let mut labs = Namespace::default();
    labs.metadata.name = Some("labs".to_owned());
    namespaces.create(&PostParams::default(), &labs).await.unwrap();
    claims_of(service).await
}

async fn create(claims: &Api<PersistentVolumeClaim>, name: &str, annotations: &Value) {
    let claim = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    claims.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
}

async fn release(service: &Service, lab: &str) -> Value {
    let hub = service.hub().unwrap();
    let request = hub.request(http::Method::DELETE, &format!("{PREFIX}/labs/{lab}/volumes"));
    let answer = hub.send(request).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json().unwrap()
}

/// The name of the claim that the lab's pod mounts.
async fn mounted(service: &Service, pod: &str) -> String {
    let pods: Api<Pod> = Api::namespaced(service.cluster().await.unwrap(), "labs");
    let volumes = pods.get(pod).await.unwrap().spec.unwrap().volumes.unwrap();
    volumes.into_iter().find_map(|volume| volume.persistent_volume_claim).unwrap().claim_name
}

#[tokio::test]
async fn a_claim_is_made_as_configured_and_outlives_its_lab() {
    let service = Service::start_with(BINARY, with_claims("{pvc_name}", "retain")).await.unwrap();
    let ada = service.user("ada").unwrap();
    run(&ada, "ada").await;
    let claims = claims_of(&service).await;
    let claim = claims.get("claim-ada").await.unwrap();
    let spec = claim.spec.unwrap();
    assert_eq!(spec.storage_class_name.as_deref(), Some("fast"));
    assert_eq!(spec.access_modes.unwrap(), ["ReadWriteMany"]);
    assert_eq!(spec.selector.unwrap().match_labels.unwrap()["kind"], "ssd");
    assert_eq!(claim.metadata.labels.unwrap()["tier"], "home");
    assert_eq!(claim.metadata.annotations.unwrap()["example.org/owner"], "team");
    stop(&ada, "ada").await;
    assert_eq!(names(&claims).await, ["claim-ada".to_owned()].into());
    let known = ada.get(&format!("{PREFIX}/labs/ada/volumes")).await.unwrap().json().unwrap();
    let claim =
        json!({"namespace": "labs", "name": "claim-ada", "on_server_deletion": "retain", "own": true});
    assert_eq!(known, json!({"username": "ada", "server": "", "claims": [claim]}));
    let kept = json!([{"namespace": "labs", "name": "claim-ada", "reason": "retained", "used_by": null}]);
    assert_eq!(release(&service, "ada").await, json!({"deleted": [], "kept": kept}));
    assert_eq!(names(&claims).await, ["claim-ada".to_owned()].into());
}

#[tokio::test]
async fn a_server_keeps_its_claim_when_the_templates_change() {
    let mut service = Service::start_with(BINARY, with_claims("{pvc_name}", "retain")).await.unwrap();
    let ada = service.user("ada").unwrap();
    run(&ada, "ada").await;
    stop(&ada, "ada").await;
    let change = |names: Value| {
        move |config: &mut Value| {
            with_claims("{pvc_name}", "retain")(config);
            config["names"] = names;
        }
    };
    service.reconfigure(change(json!({"namespace": "labs2", "pvc": "home-{user_server}"}))).unwrap();
    service.crash_and_restart().await.unwrap();
    run(&ada, "ada").await;
    assert_eq!(mounted(&service, "nb-ada").await, "claim-ada", "in its old namespace, too");
    let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
    let labels = namespaces.get("labs").await.unwrap().metadata.labels.unwrap();
    assert!(
        !labels.contains_key("wasmspawner.io/user"),
        "a retained namespace belongs to no user: {labels:?}"
    );
    let grace = service.user("grace").unwrap();
    run(&grace, "grace").await;
    let elsewhere: Api<PersistentVolumeClaim> = Api::namespaced(service.cluster().await.unwrap(), "labs2");
    assert_eq!(names(&elsewhere).await, ["home-grace".to_owned()].into());

    stop(&ada, "ada").await;
    let forgetful = json!({"namespace": "labs", "pvc": "home-{user_server}", "remember_pvc_name": false});
    service.reconfigure(change(forgetful)).unwrap();
    service.crash_and_restart().await.unwrap();
    run(&ada, "ada").await;
    assert_eq!(mounted(&service, "nb-ada").await, "home-ada");
}

#[tokio::test]
async fn the_claim_of_an_older_kubespawner_is_found() {
    let mut service = Service::start_with(BINARY, with_claims("{pvc_name}", "retain")).await.unwrap();
    let claims = claims_before_labs(&service).await;
    let of = |user: &str| json!({"hub.jupyter.org/username": user});
    create(&claims, "claim-ada-2dl", &of("ada-l")).await;
    // Claims with the old and the new name exist: the new name is used.
    create(&claims, "claim-grace-2dh", &of("grace-h")).await;
    create(&claims, "claim-grace-h", &of("grace-h")).await;
    // This claim belongs to another user.
    create(&claims, "claim-eve-2dx", &of("eve-2dx")).await;
    for (user, claim) in [
        ("ada-l", "claim-ada-2dl"),
        ("grace-h", "claim-grace-h"),
        ("eve-x", "claim-eve-x"),
        ("joan", "claim-joan"),
    ] {
        run(&service.user(user).unwrap(), user).await;
        assert_eq!(mounted(&service, &format!("nb-{user}")).await, claim);
    }
    // The name is remembered; if somebody deletes the claim, it is created again under that name.
    let ada = service.user("ada-l").unwrap();
    stop(&ada, "ada-l").await;
    claims.delete("claim-ada-2dl", &DeleteParams::default()).await.unwrap();
    service.crash_and_restart().await.unwrap();
    run(&ada, "ada-l").await;
    assert_eq!(mounted(&service, "nb-ada-l").await, "claim-ada-2dl");
    // The cluster has another certificate after a restart, so a new client is needed.
    assert!(names(&claims_of(&service).await).await.contains("claim-ada-2dl"));
}

#[tokio::test]
async fn a_spawn_with_the_claim_of_another_user_fails() {
    let service = Service::start_with(BINARY, with_claims("{pvc_name}", "retain")).await.unwrap();
    let claims = claims_before_labs(&service).await;
    create(&claims, "claim-ada-2dl", &json!({"hub.jupyter.org/username": "ada-l"})).await;
    let mallory = service.user("ada-2dl").unwrap();
    let events = mallory.spawn_to_end("ada-2dl").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    let lab = mallory.lab("ada-2dl").await.unwrap().json().unwrap();
    assert_eq!(lab["reason"], "VolumeOfAnotherUser");
}

#[tokio::test]
async fn every_claim_of_another_user_is_refused_at_every_spawn() {
    let fails = async |client: &Client, user: &str| {
        let events = client.spawn_to_end(user).await.unwrap();
        assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
        let lab = client.lab(user).await.unwrap().json().unwrap();
        assert_eq!(lab["reason"], "VolumeOfAnotherUser", "{lab:#}");
    };
    // A claim that the policy creates for the first user.
    let mut service = Service::start_with(BINARY, with_claims("team", "retain")).await.unwrap();
    run(&service.user("ada").unwrap(), "ada").await;
    run(&service.user("ada").unwrap(), "ada/servers/gpu").await;
    fails(&service.user("grace").unwrap(), "grace").await;
    // The site's own claim belongs to nobody.
    service.reconfigure(with_claims("site", "retain")).unwrap();
    service.crash_and_restart().await.unwrap();
    create(&claims_of(&service).await, "site", &json!({})).await;
    for user in ["grace", "edsger"] {
        run(&service.user(user).unwrap(), user).await;
    }
    // A claim that the policy does not create.
    for (namespaces, user) in [("retain", "mallory"), ("single", "eve")] {
        service
            .reconfigure(|config| {
                with_claims("team", "retain")(config);
                config["kubernetes"] = json!({ "namespaces": namespaces });
                let volume = &mut config["policies"][0]["config"]["volumes"][0]["claim"];
                *volume = json!({"name": "team"});
            })
            .unwrap();
        service.crash_and_restart().await.unwrap();
        fails(&service.user(user).unwrap(), user).await;
    }
}

/// Starts and stops a lab of `ada`, so that its claim is remembered, and replaces the claim. Returns all claims.
async fn remember_a_claim_that_is_mallory_s_by_now(service: &Service) -> Api<PersistentVolumeClaim> {
    let ada = service.user("ada").unwrap();
    run(&ada, "ada").await;
    stop(&ada, "ada").await;
    let claims = claims_of(service).await;
    claims.delete("claim-ada", &DeleteParams::default()).await.unwrap();
    create(&claims, "claim-ada", &json!({"hub.jupyter.org/username": "mallory"})).await;
    claims
}

#[tokio::test]
async fn a_remembered_claim_that_belongs_to_another_user_by_now_is_refused() {
    let service = Service::start_with(BINARY, with_claims("{pvc_name}", "retain")).await.unwrap();
    let ada = service.user("ada").unwrap();
    remember_a_claim_that_is_mallory_s_by_now(&service).await;
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["reason"], "VolumeOfAnotherUser");
}

#[tokio::test]
async fn a_claim_of_another_user_is_not_deleted_with_the_server_that_remembers_it() {
    let service = Service::start_with(BINARY, with_claims("{pvc_name}", "delete")).await.unwrap();
    let claims = remember_a_claim_that_is_mallory_s_by_now(&service).await;
    assert_eq!(release(&service, "ada").await["deleted"], json!([]));
    assert_eq!(names(&claims).await, ["claim-ada".to_owned()].into());
}

#[tokio::test]
async fn a_claim_is_deleted_with_the_last_server_that_used_it() {
    let service = Service::start_with(BINARY, with_claims("claim-{username}", "delete")).await.unwrap();
    let ada = service.user("ada").unwrap();
    let gpu = "ada/servers/gpu";
    run(&ada, "ada").await;
    run(&ada, gpu).await;
    let hub = service.hub().unwrap();
    let path = format!("{PREFIX}/labs/{gpu}/volumes");
    let early = hub.send(hub.request(http::Method::DELETE, &path)).await.unwrap();
    assert_eq!(early.problem().unwrap(), "409 volumes_in_use");
    let own = ada.send(ada.request(http::Method::DELETE, &path)).await.unwrap();
    assert_eq!(own.status, 403, "a user deletes volumes by deleting a server in the Hub");
    stop(&ada, gpu).await;
    let claims = claims_of(&service).await;

    let kept = json!([{"namespace": "labs", "name": "claim-ada", "reason": "shared", "used_by": "ada"}]);
    assert_eq!(release(&service, gpu).await, json!({"deleted": [], "kept": kept}));
    assert_eq!(release(&service, gpu).await, json!({"deleted": [], "kept": []}), "it is forgotten");
    stop(&ada, "ada").await;
    let deleted = json!([{"namespace": "labs", "name": "claim-ada"}]);
    assert_eq!(release(&service, "ada").await, json!({"deleted": deleted, "kept": []}));
    assert_eq!(names(&claims).await, BTreeSet::new());
    run(&ada, "ada").await;
    assert_eq!(names(&claims).await, ["claim-ada".to_owned()].into(), "a new one for a new server");
}

/// Changes the size of the claim in the configuration, and restarts the service with it.
async fn resize(service: &mut Service, storage: &str) {
    let change = |config: &mut Value| {
        with_claims("{pvc_name}", "retain")(config);
        config["policies"][0]["config"]["volumes"][0]["claim"]["create"]["storage"] = json!(storage);
    };
    service.reconfigure(change).unwrap();
    service.crash_and_restart().await.unwrap();
}

/// The events of a start that tell about volumes, and the size that the claim requests afterwards.
async fn told_and_size(service: &Service, user: &str) -> (Vec<String>, String) {
    let client = service.user(user).unwrap();
    let events = client.spawn_to_end(user).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "a lab starts whatever the size is: {events:#?}");
    stop(&client, user).await;
    let told = events.into_iter().filter(|event| event.data.contains("he volume"));
    let claim = claims_of(service).await.get(&format!("claim-{user}")).await.unwrap();
    let size = claim.spec.unwrap().resources.unwrap().requests.unwrap().remove("storage").unwrap();
    (told.map(|event| format!("{}: {}", event.kind, event.data)).collect(), size.0)
}

#[tokio::test]
async fn a_claim_grows_with_the_configured_size_and_never_shrinks() {
    let mut service = Service::start_with(BINARY, with_claims("{pvc_name}", "retain")).await.unwrap();
    assert_eq!(told_and_size(&service, "ada").await, (vec![], "1Gi".to_owned()));
    resize(&mut service, "2Gi").await;
    let grows = vec!["info: The volume claim-ada grows from 1Gi to 2Gi".to_owned()];
    assert_eq!(told_and_size(&service, "ada").await, (grows, "2Gi".to_owned()));
    assert_eq!(told_and_size(&service, "ada").await, (vec![], "2Gi".to_owned()), "once is enough");
    resize(&mut service, "512Mi").await;
    assert_eq!(told_and_size(&service, "ada").await, (vec![], "2Gi".to_owned()));
}

#[tokio::test]
async fn a_claim_that_the_service_did_not_create_keeps_its_size_and_the_user_is_told() {
    let mut service = Service::prepare(BINARY, with_claims("{pvc_name}", "retain")).unwrap();
    service.run().await.unwrap();
    create(&claims_before_labs(&service).await, "claim-ada", &json!({"hub.jupyter.org/username": "ada"}))
        .await;
    resize(&mut service, "2Gi").await;
    let (told, size) = told_and_size(&service, "ada").await;
    let why = "error: The volume claim-ada has 1Gi and not the 2Gi of this site: it was not created for this user by \
               this service, so an administrator has to enlarge it";
    assert_eq!((told.as_slice(), size.as_str()), ([why.to_owned()].as_slice(), "1Gi"));
}

/// Creates a claim that somebody deletes and that a finalizer keeps.
async fn claim_that_is_being_deleted(service: &Service) -> Api<PersistentVolumeClaim> {
    let claims = claims_before_labs(service).await;
    create(&claims, "claim-ada", &json!({"hub.jupyter.org/username": "ada"})).await;
    let keep = Patch::Merge(json!({"metadata": {"finalizers": ["example.org/backup"]}}));
    claims.patch("claim-ada", &PatchParams::default(), &keep).await.unwrap();
    claims.delete("claim-ada", &DeleteParams::default()).await.unwrap();
    claims
}

#[tokio::test]
async fn a_lab_waits_until_its_old_claim_is_deleted_and_says_so() {
    let mut service = Service::prepare(BINARY, with_claims("{pvc_name}", "retain")).unwrap();
    for created in [true, false] {
        if !created {
            service
                .reconfigure(|config| {
                    with_claims("{pvc_name}", "retain")(config);
                    config["policies"][0]["config"]["volumes"][0]["claim"] = json!({"name": "claim-ada"});
                })
                .unwrap();
        }
        service.run().await.unwrap();
        let claims = claim_that_is_being_deleted(&service).await;
        let ada = service.user("ada").unwrap();
        assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
        let mut events = ada.events("ada").await.unwrap();
        events.until("Waiting until the old volume claim-ada is deleted").await.unwrap();
        let lab = ada.lab("ada").await.unwrap().json().unwrap();
        assert_eq!(lab["message"], "Waiting until the old volume claim-ada is deleted", "{lab:#}");
        let let_go = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        claims.patch("claim-ada", &PatchParams::default(), &let_go).await.unwrap();
        events.until("The old volume claim-ada is deleted").await.unwrap();
        if !created {
            create(&claims, "claim-ada", &json!({})).await;
        }
        let events = events.to_end().await.unwrap();
        assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
        let claim = claims.get("claim-ada").await.unwrap();
        assert!(claim.metadata.deletion_timestamp.is_none());
        service = Service::prepare(BINARY, with_claims("{pvc_name}", "retain")).unwrap();
    }
}

#[tokio::test]
async fn a_lab_whose_old_claim_is_never_deleted_fails_and_names_it() {
    let service = Service::start_with(BINARY, |config| {
        with_claims("{pvc_name}", "retain")(config);
        config["limits"]["spawn"] = json!("2s");
    })
    .await
    .unwrap();
    claim_that_is_being_deleted(&service).await;
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    let expected = "The lab was not ready in time: the old volume claim-ada is still being deleted (the finalizer \
                    example.org/backup keeps it)";
    assert_eq!(
        (events.last().unwrap().kind.as_str(), events.last().unwrap().data.as_str()),
        ("failed", expected)
    );
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["reason"], "StillBeingDeleted");
}

#[tokio::test]
async fn the_record_of_volumes_can_be_read_in_the_cluster() {
    let service = Service::start_with(BINARY, with_claims("{pvc_name}", "retain")).await.unwrap();
    run(&service.user("ada").unwrap(), "ada").await;
    let records: Api<ConfigMap> = Api::namespaced(service.cluster().await.unwrap(), "wasmspawner");
    let labelled = ListParams::default().labels("wasmspawner.io/records=wasmspawner-volumes");
    let found = records.list(&labelled).await.unwrap().items;
    let texts: Vec<String> =
        found.into_iter().filter_map(|map| map.data).flat_map(BTreeMap::into_values).collect();
    let [text] = texts.as_slice() else { panic!("one record: {texts:?}") };
    let record: Value = serde_json::from_str(text).unwrap();
    assert_eq!((&record["user"], &record["pvc"]), (&json!("ada"), &json!("claim-ada")));
}
