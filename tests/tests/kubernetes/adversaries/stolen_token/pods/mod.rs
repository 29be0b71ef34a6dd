//! Pods that an attacker with the token of the service's account tries to start, and changes of running pods.

mod attacks;
mod granted;

use k8s_openapi::api::core::v1::{Binding, Namespace, PersistentVolumeClaim, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use self::attacks::{PRIVILEGES, of_containers, of_pods};
use super::{Intruder, create, everything_in, labelled, labels, named};
use crate::site::{CLUSTER_WIDE, Site, until};

const CONTAINERS: &str = "/spec/containers";
const INIT_CONTAINERS: &str = "/spec/initContainers";

/// A change of a lab's pod: values, each at a JSON pointer.
type Attack = Vec<(&'static str, Value)>;

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_has_nothing_that_the_site_does_not_grant() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let pods = Pods::open(&site).await;
    pods.allowed(&vec![]).await;
    pods.claims_of_others(&site).await;
    for (attack, rule) in of_pods() {
        pods.refused(&attack, rule).await;
    }
    for list in ["containers", "initContainers"] {
        for (attack, rule) in of_containers() {
            pods.refused_in(list, &attack, rule).await;
        }
    }
    // The API server allows this mount of `/proc` only in a user namespace.
    let proc = json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] }, "procMount": "Unmasked" });
    pods.refused(
        &vec![("/spec/hostUsers", json!(false)), ("/spec/containers/0/securityContext", proc)],
        PRIVILEGES,
    )
    .await;
    // A container without privileges does not hide those of another.
    let second = json!({ "name": "second", "image": "x", "securityContext": { "privileged": true } });
    pods.refused(&vec![("/spec/containers/-", second)], PRIVILEGES).await;
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_runs_is_not_changed_and_not_entered() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let pods = Pods::open(&site).await;
    create(&pods.stolen, lab_pod(site.name())).await.expect("what the service does is allowed");
    // The same holds with permissions for everything, which nobody gives the account.
    let bindings: Api<RoleBinding> = Api::namespaced(site.cluster.client.clone(), &pods.namespace);
    create(&bindings, everything_in(&site)).await.unwrap();
    until(async || bindings_known(&pods.intruder, &pods.namespace).await).await;
    for change in [
        json!({ "spec": { "containers": [{ "name": "notebook", "image": "other" }] } }),
        json!({ "spec": { "activeDeadlineSeconds": 1 } }),
        json!({ "metadata": { "labels": { "component": "hub" } } }),
    ] {
        let patch = Patch::Strategic(&change);
        let attempt = pods.stolen.patch("nb-ada", &PatchParams::default(), &patch).await;
        pods.intruder.refused_by(attempt, CHANGE, &change.to_string());
    }
    let namespaces: Api<Namespace> = Api::all(pods.intruder.client.clone());
    for labels in [
        json!({ "pod-security.kubernetes.io/enforce": "privileged" }),
        json!({ "wasmspawner.io/instance": "other" }),
        json!({ "a": "b" }),
    ] {
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        let attempt = namespaces.patch(&pods.namespace, &PatchParams::default(), &patch).await;
        pods.intruder.refused_by(attempt, CHANGE, &labels.to_string());
    }
    let shell = json!({ "name": "shell", "image": "x", "targetContainerName": "notebook" });
    let debug = Patch::Strategic(json!({ "spec": { "ephemeralContainers": [shell] } }));
    let attempt = pods.stolen.patch_ephemeral_containers("nb-ada", &PatchParams::default(), &debug).await;
    pods.intruder.refused(attempt, "an ephemeral container");
    let resize = Patch::Strategic(json!({ "spec": { "containers": [
        { "name": "notebook", "resources": { "limits": { "cpu": "2" }, "requests": { "cpu": "2" } } } ] } }));
    let attempt = pods.stolen.patch_subresource("resize", "nb-ada", &PatchParams::default(), &resize).await;
    // Kubernetes has this subresource since 1.33.
    if !matches!(&attempt, Err(kube::Error::Api(status)) if status.code == 404) {
        pods.intruder.refused(attempt, "another size");
    }
    let bind =
        json!({ "metadata": { "name": "nb-ada" }, "target": { "kind": "Node", "name": "control-plane" } });
    let bind: Binding = serde_json::from_value(bind).unwrap();
    pods.intruder.refused(post(&pods.stolen, "binding", &bind).await, "another node");
    let evict: Eviction = serde_json::from_value(json!({ "metadata": { "name": "nb-ada" } })).unwrap();
    pods.intruder.refused(post(&pods.stolen, "eviction", &evict).await, "an eviction");
    for path in ["exec?command=sh&stdout=true", "attach?stdout=true", "portforward?ports=80", "proxy/"] {
        let url = format!("/api/v1/namespaces/{}/pods/nb-ada/{path}", pods.namespace);
        let request = http::Request::post(url).body(Vec::new()).unwrap();
        pods.intruder.refused(pods.intruder.client.request::<Value>(request).await, path);
    }
    site.leave().await;
}

const CHANGE: &str = "the service changes no pod and no namespace that exists";

/// The pods of a namespace with labs, as the intruder and as an administrator.
struct Pods {
    namespace: String,
    stolen: Api<Pod>,
    admins: Api<Pod>,
    intruder: Intruder,
    lab: Value,
}

impl Pods {
    async fn open(site: &Site) -> Self {
        let namespace = site.namespace("existing-ada").await;
        let intruder = Intruder::under_the_policy(site).await;
        let admin = site.cluster.client.clone();
        let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), &namespace);
        for name in ["nb-ada", "hub", "environment", "reader", "reader-of-all"] {
            create(&accounts, named(name)).await.unwrap();
        }
        until(async || accounts.get_opt("default").await.unwrap().is_some()).await;
        Self {
            stolen: intruder.of(&namespace),
            admins: Api::namespaced(admin, &namespace),
            namespace,
            intruder,
            lab: lab_pod(site.name()),
        }
    }

    /// Tries to start the pod of a lab with the change.
    async fn attempt(&self, api: &Api<Pod>, change: &Attack) -> kube::Result<Pod> {
        let mut pod = self.lab.clone();
        for (pointer, value) in change {
            set(&mut pod, pointer, value.clone());
        }
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        api.create(&dry_run, &serde_json::from_value(pod).unwrap()).await
    }

    async fn allowed(&self, change: &Attack) {
        self.attempt(&self.stolen, change).await.unwrap_or_else(|refusal| panic!("{change:?}: {refusal}"));
    }

    /// Checks that the rule refuses the change, and that nothing else in the cluster does.
    async fn refused(&self, change: &Attack, rule: &str) {
        let said = format!("{change:?}");
        self.attempt(&self.admins, change).await.unwrap_or_else(|refusal| panic!("{said}: {refusal}"));
        self.intruder.refused_by(self.attempt(&self.stolen, change).await, rule, &said);
    }

    /// A claim gets its volume from the storage class, and no data of others.
    async fn claims_of_others(&self, site: &Site) {
        let claims: Api<PersistentVolumeClaim> = self.intruder.of(&self.namespace);
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let of_grace = json!({ "kind": "PersistentVolumeClaim", "name": "claim-grace" });
        for (field, value) in [
            ("selector", json!({})),
            ("volumeName", json!("of-grace")),
            ("dataSource", of_grace.clone()),
            ("dataSourceRef", of_grace),
        ] {
            let mut claim = labelled("claim-ada", &labels(site.name()));
            claim["spec"] = json!({ "accessModes": ["ReadWriteOnce"], "storageClassName": "homes",
                "resources": { "requests": { "storage": "1Gi" } }, (field): value });
            let attempt = claims.create(&dry_run, &serde_json::from_value(claim).unwrap()).await;
            if field == "selector" {
                attempt.expect("what the service does is allowed");
            } else {
                self.intruder.refused_by(attempt, "names neither a volume nor a source", field);
            }
        }
    }

    /// The same for a change of the first container in a list.
    async fn refused_in(&self, list: &str, change: &Attack, rule: &str) {
        let mut containers = self.lab["spec"][list].clone();
        for (pointer, value) in change {
            set(&mut containers[0], pointer, value.clone());
        }
        if list == "initContainers" {
            // Init containers have probes and hooks only if they run beside the others.
            containers[0]["restartPolicy"] = json!("Always");
        }
        let mut change =
            vec![(if list == "containers" { CONTAINERS } else { INIT_CONTAINERS }, containers.clone())];
        if containers[0]["volumeDevices"].is_array() {
            let disk = json!([{ "name": "disk", "persistentVolumeClaim": { "claimName": "disk" } }]);
            change.push(("/spec/volumes", disk));
        }
        self.refused(&change, rule).await;
    }
}

/// The pod of a lab as the service creates it, with a step before it.
pub(super) fn lab_pod(instance: &str) -> Value {
    let context = json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] }, "runAsNonRoot": true });
    let mut pod = labelled("nb-ada", &labels(instance));
    pod["spec"] = json!({
        "containers": [{ "name": "notebook", "image": "x", "securityContext": context,
            "envFrom": [{ "configMapRef": { "name": "nb-ada-env" } }],
            "env": [{ "name": "TOKEN",
                "valueFrom": { "secretKeyRef": { "name": "nb-ada", "key": "env.TOKEN" } } }],
            "resources": { "limits": { "cpu": "1", "memory": "1Gi" } },
            "readinessProbe": { "httpGet": { "path": "/", "port": 8888 } } }],
        "initContainers": [{ "name": "step", "image": "x", "securityContext": context,
            "resources": { "limits": { "cpu": "1", "memory": "1Gi" } } }],
        "volumes": [
            { "name": "wasmspawner-nss", "configMap": { "name": "nb-ada-nss" } },
            { "name": "wasmspawner-secrets", "secret": { "secretName": "nb-ada" } },
            { "name": "home", "persistentVolumeClaim": { "claimName": "claim-ada" } },
        ],
        "restartPolicy": "OnFailure",
        "serviceAccountName": "nb-ada",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": { "runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": true,
            "seccompProfile": { "type": "RuntimeDefault" }, "appArmorProfile": { "type": "RuntimeDefault" } },
    });
    pod
}

/// Sets the value at a JSON pointer. A `-` at its end means the end of a list.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Array(list) => list.push(value),
        parent => parent[key.replace("~1", "/")] = value,
    }
}

async fn bindings_known(intruder: &Intruder, namespace: &str) -> bool {
    intruder.of::<RoleBinding>(namespace).list(&kube::api::ListParams::default()).await.is_ok()
}

async fn post<K: serde::Serialize>(pods: &Api<Pod>, subresource: &str, body: &K) -> kube::Result<Value> {
    pods.create_subresource(subresource, "nb-ada", &PostParams::default(), body).await
}
