//! Blueprints that are objects in the cluster.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::kubernetes::SKIPPED;

use crate::labs::{assert_permitted, service_with, stop};
use crate::site::{ONE_NAMESPACE, Site, until};

const PERMISSIONS: &str = include_str!("../../../deploy/permissions/blueprints.yaml");

fn blueprints(site: &Site, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("wasmspawner.io", "v1alpha1", "Blueprint");
    let resource = ApiResource::from_gvk_with_plural(&kind, "blueprints");
    Api::namespaced_with(site.cluster.client.clone(), namespace, &resource)
}

fn blueprint(name: &str, spec: &Value) -> DynamicObject {
    let object = json!({ "apiVersion": "wasmspawner.io/v1alpha1", "kind": "Blueprint",
        "metadata": { "name": name }, "spec": spec });
    serde_json::from_value(object).unwrap()
}

/// The names and problems of the blueprints that administrators see.
async fn told(admin: &Client) -> Vec<(String, Option<String>)> {
    let all = admin.get(&format!("{PREFIX}/blueprints")).await.unwrap().json().unwrap();
    let text = |one: &Value, field: &str| one[field].as_str().map(str::to_owned);
    all.as_array().unwrap().iter().map(|one| (text(one, "name").unwrap(), text(one, "problem"))).collect()
}

async fn offered(user: &Client) -> Vec<Value> {
    let answer = user.get(&format!("{PREFIX}/blueprints/ada")).await.unwrap();
    let all = answer.json().unwrap();
    all.as_array().unwrap_or_else(|| panic!("{answer:?}")).iter().map(|one| one["name"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_service_s_namespace_are_blueprints_of_the_site() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    site.apply(PERMISSIONS).await;
    let labs = site.namespace("labs").await;
    let (here, elsewhere) = (blueprints(&site, site.name()), blueprints(&site, &labs));
    let params = PostParams::default();
    let course = json!({ "extends": ["base"], "displayName": "Course", "env": { "COURSE": "physics" } });
    here.create(&params, &blueprint("course", &course)).await.unwrap();
    elsewhere.create(&params, &blueprint("foreign", &json!({ "env": { "A": "1" } }))).await.unwrap();
    let mut service = service_with(&site, "single", &labs, |config| {
        config["blueprints"] = json!({ "custom_resources": true, "site": { "base": { "env": { "SITE": "ours", "COURSE": "none" } } } });
    });
    service.run().await.unwrap();
    let (ada, admin) = (service.user("ada").unwrap(), service.admin().unwrap());
    assert_eq!(offered(&ada).await, ["base", "course"], "there at once, and none of another namespace");

    let events = ada.spawn_to_end("ada/servers/course").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let maps: Api<ConfigMap> = Api::namespaced(site.cluster.client.clone(), &labs);
    let env = maps.list(&kube::api::ListParams::default()).await.unwrap().items;
    let env = env.into_iter().find_map(|map| map.data.filter(|data| data.contains_key("COURSE"))).unwrap();
    assert_eq!((env["COURSE"].as_str(), env["SITE"].as_str()), ("physics", "ours"));

    here.create(
        &params,
        &blueprint(
            "lost",
            &json!({ "extends": ["gone"],
        "options": { "number": 1, "deep": true, "text": "x" } }),
        ),
    )
    .await
    .unwrap();
    here.create(&params, &blueprint("base", &json!({ "env": { "SITE": "theirs" } }))).await.unwrap();
    until(async || told(&admin).await.len() == 4).await;
    let problems = told(&admin).await;
    let problem =
        |name: &str| problems.iter().find_map(|(of, problem)| problem.clone().filter(|_| of == name));
    assert!(problem("lost").unwrap().contains("there is no blueprint `gone`"), "{problems:?}");
    assert!(problem("base").unwrap().contains("is in the configuration of the site, too"), "{problems:?}");
    assert_eq!(offered(&ada).await, ["base", "course"]);
    service.logged("a blueprint in the cluster cannot be used").await.unwrap();

    // A corrected, changed or deleted blueprint takes effect for the next lab, without a restart.
    let mended = Patch::Merge(json!({ "spec": { "extends": ["course"] } }));
    here.patch("lost", &PatchParams::default(), &mended).await.unwrap();
    until(async || offered(&ada).await == ["base", "course", "lost"]).await;
    service.crash_and_restart().await.unwrap();
    assert_eq!(offered(&ada).await, ["base", "course", "lost"]);
    here.delete("course", &DeleteParams::default()).await.unwrap();
    until(async || offered(&ada).await == ["base"]).await;
    assert_eq!(ada.lab("ada/servers/course").await.unwrap().json().unwrap()["status"], "running");

    for (spec, text) in [
        (json!({ "size": 1 }), "spec.size"),
        (json!({ "env": { "A": 1 } }), "spec.env"),
        (json!({ "volumes": [{ "name": "data" }] }), "mountPath"),
    ] {
        let refused = here.create(&params, &blueprint("wrong", &spec)).await.unwrap_err().to_string();
        assert!(refused.contains(text), "the API server refuses {spec}: {refused}");
    }
    ada.stop_to_end("ada/servers/course").await.unwrap();
    assert_permitted(&service);
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_permission_for_blueprints_labs_start_and_the_log_has_the_remedy() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    let labs = site.namespace("labs").await;
    let mut service = service_with(&site, "single", &labs, |config| {
        config["blueprints"] = json!({ "custom_resources": true });
    });
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    service.logged("apply deploy/permissions/blueprints.yaml").await.unwrap();
    stop(&service, "ada").await;
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_the_kind_is_refused_with_the_remedy() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.cluster.install_definition().await.unwrap();
    site.apply(PERMISSIONS).await;
    let labs = site.namespace("labs").await;
    let service = service_with(&site, "single", &labs, |config| {
        config["blueprints"] = json!({ "custom_resources": true });
    });
    let output = service.run_to_end().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && stderr.contains("wasmspawner crds | kubectl apply -f -"), "{stderr}");
    assert!(stderr.contains("blueprints.wasmspawner.io"), "{stderr}");
    site.leave().await;
}
