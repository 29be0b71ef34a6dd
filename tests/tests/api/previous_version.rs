//! Labs that a version without records has left running. Delete this file together with `spawner/previous_version.rs`.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_running;

use super::records::{gone, is_recorded_as_ready, records};
use super::running::until;
use crate::BINARY;

const JOB: &str = "0196f000-0000-7000-8000-000000000001";

/// The place of an old lab, and the names in its annotations.
struct OldLab {
    client: Client,
    user: &'static str,
    namespace: &'static str,
}

impl OldLab {
    async fn of(service: &Service, user: &'static str, namespace: &'static str) -> Self {
        Self { client: service.cluster().await.unwrap(), user, namespace }
    }

    /// The metadata that the previous version wrote on every object of a lab.
    fn metadata(&self, name: &str) -> Value {
        json!({
            "name": name,
            "labels": {
                "app.kubernetes.io/managed-by": "wasmspawner", "argocd.argoproj.io/instance": "nublado-users",
                "wasmspawner.io/instance": "wasmspawner", "wasmspawner.io/job-id": JOB,
                "wasmspawner.io/server": "", "wasmspawner.io/user": self.user,
            },
            "annotations": {
                "argocd.argoproj.io/compare-options": "IgnoreExtraneous", "argocd.argoproj.io/sync-options": "Prune=false",
                "wasmspawner.io/servername": "", "wasmspawner.io/username": self.user,
            },
        })
    }

    /// The lab's own namespace.
    async fn make_namespace(&self) {
        let mut metadata = self.metadata(self.namespace);
        metadata["annotations"]["wasmspawner.io/operation"] = "spawn".into();
        make(&Api::<Namespace>::all(self.client.clone()), json!({ "metadata": metadata })).await;
    }

    /// The environment `ConfigMap`, with the previous version's data about the lab.
    async fn make_env(&self) {
        let written = json!({
            "job_id": JOB, "started_at": "2026-01-02T03:04:05Z", "deadline": "2026-01-02T03:14:05Z",
            "pod": format!("nb-{}", self.user), "elsewhere": { "JUPYTERHUB_API_TOKEN": "<redacted>" },
            "options": { "size": "small" }, "uid": 1234, "gid": 1235, "groups": [{ "name": "users", "id": 1235 }],
            "quotas": { "limits": { "cpu": 1.0, "memory": 1024 }, "requests": { "cpu": null, "memory": null } },
            "image": { "reference": "quay.io/x:1" }, "policy": [{ "name": "default", "digest": "sha256:aa" }],
        });
        self.make_env_with(&written.to_string()).await;
    }

    async fn make_env_with(&self, annotation: &str) {
        let mut metadata = self.metadata(&format!("nb-{}-env", self.user));
        metadata["annotations"]["wasmspawner.io/lab"] = annotation.into();
        make(&self.api::<ConfigMap>(), json!({ "metadata": metadata, "data": { "LANG": "C.UTF-8" } })).await;
    }

    async fn make_rest(&self) {
        let name = format!("nb-{}", self.user);
        let data = json!({ "metadata": self.metadata(&format!("{name}-nss")), "data": { "passwd": "x" } });
        make(&self.api::<ConfigMap>(), data).await;
        make(&self.api::<Secret>(), json!({ "metadata": self.metadata(&name), "stringData": { "a": "b" } }))
            .await;
        make(&self.api::<ServiceAccount>(), json!({ "metadata": self.metadata(&name) })).await;
    }

    /// The pod, which is running when this returns.
    async fn make_pod(&self) {
        let name = format!("nb-{}", self.user);
        let container = json!({ "name": "notebook", "image": "quay.io/x:1", "ports": [{ "name": "jupyterhub", "containerPort": 8888 }] });
        let pod = json!({ "metadata": self.metadata(&name), "spec": { "containers": [container] } });
        make(&self.api::<Pod>(), pod).await;
        let ready = async || {
            let pod = self.api::<Pod>().get(&name).await.unwrap();
            let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
            conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        };
        let mut again = tokio::time::interval(Duration::from_millis(20));
        let running = async {
            while !ready().await {
                again.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), running).await.unwrap();
    }

    async fn make_all(&self) {
        self.make_namespace().await;
        self.make_env().await;
        self.make_rest().await;
        self.make_pod().await;
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    /// The resource versions of pod, environment and namespace, which show whether they were written to.
    async fn versions(&self) -> Vec<Option<String>> {
        let name = format!("nb-{}", self.user);
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        vec![
            self.api::<Pod>().get_opt(&name).await.unwrap().and_then(|pod| pod.metadata.resource_version),
            self.api::<ConfigMap>().get(&format!("{name}-env")).await.unwrap().metadata.resource_version,
            namespaces.get(self.namespace).await.unwrap().metadata.resource_version,
        ]
    }
}

async fn make<K>(api: &Api<K>, object: Value)
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

fn keeping(config: &mut Value) {
    config["embedded"]["keep_labs"] = true.into();
}

#[tokio::test]
async fn a_lab_of_the_previous_version_is_adopted_once_and_can_be_stopped() {
    let mut service = Service::start_with(BINARY, keeping).await.unwrap();
    OldLab::of(&service, "ada", "nublado-ada").await.make_all().await;
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.lab("ada").await.unwrap().status, 404, "it is adopted only at a start");

    service.crash_and_restart().await.unwrap();
    let lab = until_running(&ada, "ada").await;
    assert_eq!((&lab["uid"], &lab["job_id"]), (&json!(1234), &json!(JOB)), "{lab:#}");
    assert_eq!(lab["options"], json!({ "size": "small" }));
    assert_eq!(lab["env"], json!({ "LANG": "C.UTF-8", "JUPYTERHUB_API_TOKEN": "<redacted>" }));
    is_recorded_as_ready(&service, "lab-ada").await;
    let record = records(&service).await.get("lab-ada").await.unwrap();
    let orphans = service.admin().unwrap().get(&format!("{PREFIX}/orphans")).await.unwrap().json().unwrap();
    assert_eq!(orphans, json!([]));

    let before = OldLab::of(&service, "ada", "nublado-ada").await.versions().await;
    service.crash_and_restart().await.unwrap();
    until_running(&ada, "ada").await;
    assert_eq!(
        OldLab::of(&service, "ada", "nublado-ada").await.versions().await,
        before,
        "a second start writes nothing"
    );
    let again = records(&service).await.get("lab-ada").await.unwrap();
    assert_eq!(again.metadata.resource_version, record.metadata.resource_version);

    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    until(&ada, "ada", Value::is_null).await;
    gone(&records(&service).await, "lab-ada").await;
    let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
    assert!(namespaces.get_opt("nublado-ada").await.unwrap().is_none(), "the record goes last");
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}

#[tokio::test]
async fn a_crash_during_an_adoption_loses_no_lab() {
    for point in [
        "before create Spawn",
        "after create Spawn",
        "before label Pod",
        "after label Pod",
        "after label Namespace",
        "before label ConfigMap",
        "after label ConfigMap",
    ] {
        let mut service = Service::start_with(BINARY, keeping).await.unwrap();
        OldLab::of(&service, "ada", "nublado-ada").await.make_all().await;
        service.sync().await.unwrap();
        service.kill();
        service.meets(&format!("abort {point}"));
        assert!(service.run().await.is_err(), "{point}: it lives on");
        service.run().await.unwrap();
        let ada = service.user("ada").unwrap();
        until_running(&ada, "ada").await;
        assert_eq!(ada.stop("ada").await.unwrap().status, 202, "{point}");
        gone(&records(&service).await, "lab-ada").await;
        let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
        assert!(namespaces.get_opt("nublado-ada").await.unwrap().is_none(), "{point}");
    }
}

/// A user who may write into some namespace can copy all labels and annotations.
#[tokio::test]
async fn an_imitation_of_an_old_lab_is_reported_and_not_changed() {
    let mut service = Service::start_with(BINARY, keeping).await.unwrap();
    let client = service.cluster().await.unwrap();
    let elsewhere = OldLab::of(&service, "eve", "evil").await;
    elsewhere.make_all().await;
    let without_pod = OldLab::of(&service, "bob", "nublado-bob").await;
    without_pod.make_namespace().await;
    without_pod.make_env().await;
    let in_others_namespace = OldLab::of(&service, "carl", "nublado-carl").await;
    make(&Api::<Namespace>::all(client.clone()), json!({ "metadata": { "name": "nublado-carl" } })).await;
    in_others_namespace.make_env().await;
    in_others_namespace.make_pod().await;
    let unreadable = OldLab::of(&service, "dora", "nublado-dora").await;
    unreadable.make_namespace().await;
    unreadable.make_env_with("{\"job_id\": 7}").await;
    unreadable.make_pod().await;
    let labs = [elsewhere, without_pod, in_others_namespace, unreadable];
    let mut before = Vec::new();
    for lab in &labs {
        before.push(lab.versions().await);
    }

    service.crash_and_restart().await.unwrap();
    let all = service.hub().unwrap().get(&format!("{PREFIX}/labs?status=all")).await.unwrap().json().unwrap();
    assert_eq!(all, json!([]));
    let left = records(&service).await.list(&kube::api::ListParams::default()).await.unwrap().items;
    assert!(left.is_empty(), "{left:#?}");
    for (lab, before) in labs.iter().zip(before) {
        let lab = OldLab::of(&service, lab.user, lab.namespace).await;
        assert_eq!(lab.versions().await, before, "{}", lab.user);
    }
    for why in [
        "it is not in the place of the lab that it names",
        "the lab that it names has no pod of that spawn",
        "the namespace is not the lab's own",
        "its annotation cannot be read",
    ] {
        service.logged(why).await.unwrap();
    }
    let orphans = service.admin().unwrap().get(&format!("{PREFIX}/orphans")).await.unwrap().json().unwrap();
    assert_eq!(orphans.as_array().unwrap().len(), 3, "the three pods: {orphans:#}");
}

#[tokio::test]
async fn in_a_retained_namespace_only_objects_of_the_old_lab_are_deleted() {
    let shared = |config: &mut Value| {
        keeping(config);
        config["kubernetes"] = json!({ "namespaces": "retain" });
        config["names"] = json!({ "namespace": "labs" });
    };
    let mut service = Service::start_with(BINARY, shared).await.unwrap();
    let lab = OldLab::of(&service, "ada", "labs").await;
    make(&Api::<Namespace>::all(lab.client.clone()), json!({ "metadata": { "name": "labs" } })).await;
    lab.make_env().await;
    lab.make_rest().await;
    lab.make_pod().await;
    // An object with the name of one of the lab's, which does not belong to it.
    make(&lab.api::<Secret>(), json!({ "metadata": { "name": "nb-ada-pull" }, "stringData": { "a": "b" } }))
        .await;

    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    until_running(&ada, "ada").await;
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    gone(&records(&service).await, "lab-ada").await;
    let lab = OldLab::of(&service, "ada", "labs").await;
    assert!(lab.api::<Pod>().get_opt("nb-ada").await.unwrap().is_none());
    for name in ["nb-ada-env", "nb-ada-nss"] {
        assert!(lab.api::<ConfigMap>().get_opt(name).await.unwrap().is_none(), "{name}");
    }
    assert!(lab.api::<Secret>().get_opt("nb-ada").await.unwrap().is_none());
    assert!(lab.api::<ServiceAccount>().get_opt("nb-ada").await.unwrap().is_none());
    assert!(lab.api::<Secret>().get_opt("nb-ada-pull").await.unwrap().is_some(), "somebody else's");
}
