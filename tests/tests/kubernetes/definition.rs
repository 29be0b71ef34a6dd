//! The custom resource of the records is that of another version.

use std::cell::Cell;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams, TypeMeta};
use serde_json::{Value, json};
use wasmspawner_core::record::{API_VERSION, KIND, complete_records};
use wasmspawner_tests::kubernetes::SKIPPED;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_running;

use crate::labs::{gone, service_with, start};
use crate::site::{ONE_NAMESPACE, Site, until};

const NAME: &str = "spawns.wasmspawner.io";
const REMEDY: &str = "wasmspawner crds | kubectl apply -f -";

#[tokio::test(flavor = "multi_thread")]
async fn an_older_definition_keeps_the_service_unready_until_it_is_replaced() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let definition = Definition::installed(&site).await;
    let mut service = service(&site).await;
    definition.set(|schema| remove(schema, "/status", "restarts")).await;
    service.begin().unwrap();
    service.logged("unknown field \"status.restarts\"").await.unwrap();
    assert!(service.log().contains(REMEDY), "{}", service.log());
    assert_eq!(service.probes().get("/readyz").await.unwrap().status, 503);
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().problem().unwrap(), "503 not_ready");

    // It has all fields, and lacks a word.
    let without_word = |schema: &mut Value| {
        let words = schema.pointer_mut("/properties/status/properties/stage/enum").unwrap();
        words.as_array_mut().unwrap().retain(|word| word != "Unknown");
    };
    definition.set(without_word).await;
    service.logged("Unsupported value").await.unwrap();
    definition.set(|_| ()).await;
    service.until_ready().await.unwrap();
    start(&ada, "ada").await;
    ada.stop_to_end("ada").await.unwrap();
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_drops_is_not_written_again_and_again() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    let definition = Definition::installed(&site).await;
    let mut service = service(&site).await;
    service.run().await.unwrap();
    let (ada, eve) = (service.user("ada").unwrap(), service.user("eve").unwrap());
    start(&ada, "ada").await;

    definition.set(|schema| remove(schema, "/status", "readyAt")).await;
    let before = writes(&service).await;
    start(&eve, "eve").await;
    service.logged("it drops status.readyAt").await.unwrap();
    ada.stop_to_end("ada").await.unwrap();
    eve.stop_to_end("eve").await.unwrap();
    let written = writes(&service).await - before;
    assert!(written < 30, "{written} writes for a start and two stops");
    assert_eq!(service.log().matches("it drops").count(), 1, "{}", service.log());
    assert!(service.log().contains(REMEDY));

    // A lab that would be looked for in the wrong way after a restart is not started.
    definition.set(|schema| remove(schema, "/spec/properties/operation", "requestedBy")).await;
    let refused = ada.spawn("ada").await.unwrap();
    assert_eq!(refused.problem().unwrap(), "503 cluster_unavailable", "{refused:?}");
    gone(&site.spawns(), "lab-ada").await;
    definition.set(|_| ()).await;
    start(&ada, "ada").await;
    service.crash_and_restart().await.unwrap();
    until_running(&ada, "ada").await;
    ada.stop_to_end("ada").await.unwrap();
    site.leave().await;
}

async fn service(site: &Site) -> Service {
    let labs = site.namespace("labs").await;
    service_with(site, "single", &labs, |_| {})
}

/// The requests to the API server that replace an object.
async fn writes(service: &Service) -> u32 {
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    let is_update = |line: &&str| {
        line.starts_with("wasmspawner_kubernetes_requests_total{") && line.contains("verb=\"update\"")
    };
    let count = |line: &str| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
    metrics.lines().filter(is_update).map(count).sum()
}

/// Removes a field from the schema of an object.
fn remove(schema: &mut Value, parent: &str, field: &str) {
    let parent = schema.pointer_mut(&format!("/properties{parent}")).unwrap();
    assert!(parent["properties"].as_object_mut().unwrap().remove(field).is_some(), "{field}");
}

/// The definition in the cluster.
struct Definition<'a> {
    site: &'a Site,
    api: Api<CustomResourceDefinition>,
    whole: Value,
    /// How often it was changed.
    changes: Cell<usize>,
}

impl<'a> Definition<'a> {
    async fn installed(site: &'a Site) -> Self {
        let api: Api<CustomResourceDefinition> = Api::all(site.cluster.client.clone());
        let whole = serde_json::to_value(api.get(NAME).await.unwrap().spec).unwrap();
        Self { site, api, whole, changes: Cell::new(0) }
    }

    /// Gives the whole definition this change, and waits until the API server follows it.
    async fn set(&self, change: impl FnOnce(&mut Value)) {
        let mut spec = self.whole.clone();
        let schema = spec.pointer_mut("/versions/0/schema/openAPIV3Schema").unwrap();
        change(schema);
        self.changes.update(|count| count + 1);
        let mark = format!("mark{}", self.changes.get());
        schema["properties"][&mark] = json!({ "type": "string" });
        let versions = Patch::Merge(json!({ "spec": { "versions": spec["versions"] } }));
        self.api.patch(NAME, &PatchParams::default(), &versions).await.unwrap();
        let mut attempt: DynamicObject = serde_json::from_value(complete_records().remove(0)).unwrap();
        attempt.types = Some(TypeMeta { api_version: API_VERSION.to_owned(), kind: KIND.to_owned() });
        attempt.metadata.name = Some("attempt".to_owned());
        attempt.data[&mark] = json!("kept");
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let spawns = self.site.spawns();
        until(async || spawns.create(&dry_run, &attempt).await.unwrap().data[&mark] == "kept").await;
    }
}
