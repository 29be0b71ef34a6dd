//! Changes of workloads that an attacker with the token of the service's account tries.

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use super::pods::lab_pod;
use super::{Intruder, create, named};
use crate::site::{CLUSTER_WIDE, Site, until};
use crate::workloads::shop::{Shop, deployment, permitted_namespace};

/// An attacker who has taken over the service can only put labs without privileges into a workload, and take labs out.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_s_account_changes_nothing_of_a_workload_but_labs() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    let shop = Shop::open(&site, "delete").await;
    let web = shop.deploy("web", 1).await;
    let client = site.account_s_client().await;
    let deployments = Api::<Deployment>::namespaced(client.clone(), &shop.namespace);
    let attempt = async |patch: &Value| {
        let attempt = deployments.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await;
        attempt.map(|_| ()).map_err(|refused| refused.to_string())
    };
    let template = |template: Value| json!({ "spec": { "template": template } });
    let pod = |spec: Value| template(json!({ "spec": spec }));
    let nobody = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0b0e9a52" }]);
    for patch in [
        json!({ "metadata": { "ownerReferences": nobody } }),
        json!({ "metadata": { "finalizers": ["example.org/stuck"] } }),
        json!({ "metadata": { "labels": { "lab.wasmspawner.io/0123456789": "x" } } }),
        json!({ "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}" } } }),
        json!({ "spec": { "replicas": 0 } }),
        json!({ "spec": { "paused": true } }),
        json!({ "spec": { "strategy": { "type": "Recreate", "rollingUpdate": null } } }),
        template(json!({ "metadata": { "labels": { "app": "web", "role": "admin" } } })),
        template(json!({ "metadata": { "annotations": { "example.org/inject": "true" } } })),
        pod(json!({ "containers": [{ "name": "web", "image": "other:1" }] })),
        pod(
            json!({ "containers": [{ "name": "web", "$patch": "delete" }, { "name": LAB, "image": "lab:1" }] }),
        ),
        pod(json!({ "containers": [{ "name": "beside", "image": "other:1" }] })),
        pod(json!({ "initContainers": [{ "name": "first", "image": "other:1" }] })),
        pod(json!({ "volumes": [{ "name": "node", "hostPath": { "path": "/" } }] })),
        pod(json!({ "imagePullSecrets": [{ "name": "other" }] })),
        pod(json!({ "serviceAccountName": "other" })),
        pod(json!({ "hostPID": true })),
        pod(json!({ "hostIPC": true })),
        pod(json!({ "hostNetwork": true })),
        pod(json!({ "shareProcessNamespace": true })),
        pod(json!({ "securityContext": { "runAsUser": 0 } })),
        pod(json!({ "nodeName": "control-plane" })),
        pod(json!({ "tolerations": [{ "operator": "Exists" }] })),
        pod(json!({ "priorityClassName": "system-node-critical" })),
    ] {
        let refused = attempt(&patch).await.unwrap_err();
        assert!(refused.contains("of a workload the service may only change"), "{patch}: {refused}");
    }
    for (field, value) in [
        ("/securityContext", Value::Null),
        ("/securityContext/allowPrivilegeEscalation", json!(true)),
        ("/securityContext/runAsNonRoot", json!(false)),
        ("/securityContext/runAsUser", json!(0)),
        ("/securityContext/capabilities/drop", json!([])),
        ("/securityContext/capabilities/add", json!(["SYS_ADMIN"])),
        ("/securityContext/seccompProfile/type", json!("Unconfined")),
        ("/securityContext/appArmorProfile", json!({ "type": "Unconfined" })),
        ("/securityContext/procMount", json!("Default")),
        ("/securityContext/seLinuxOptions", json!({ "type": "spc_t" })),
        ("/ports", json!([{ "containerPort": 40000, "hostPort": 40000 }])),
    ] {
        let mut container = lab_container();
        set(&mut container, field, value);
        for list in ["containers", "initContainers"] {
            let refused = attempt(&pod(json!({ (list): [container] }))).await.unwrap_err();
            assert!(refused.contains("a lab in a workload has no privileges"), "{container}: {refused}");
        }
    }
    let mut privileged = lab_container();
    privileged["securityContext"] = json!({ "privileged": true });
    let refused = attempt(&pod(json!({ "initContainers": [privileged] }))).await.unwrap_err();
    assert!(refused.contains("a lab in a workload has no privileges"), "{refused}");
    let token = json!({ "sources": [{ "serviceAccountToken": { "path": "token" } }] });
    for source in [
        json!({ "hostPath": { "path": "/" } }),
        json!({ "projected": token }),
        json!({ "persistentVolumeClaim": { "claimName": "theirs" } }),
        json!({ "csi": { "driver": "csi.example.org" } }),
    ] {
        let mut volume = source.clone();
        volume["name"] = json!(format!("{LAB}-node"));
        let refused = attempt(&pod(json!({ "volumes": [volume] }))).await.unwrap_err();
        assert!(refused.contains("a lab in a workload has neither volume claims nor"), "{source}: {refused}");
    }
    assert_eq!(shop.get("web").await.spec, web.spec);
    // The refusals above do not come from a general refusal of labs.
    let mut lab = lab_container();
    lab["volumeMounts"] = json!([no_token_mount()]);
    attempt(&pod(json!({ "containers": [lab], "volumes": [no_token()] }))).await.unwrap();

    let pods = Api::<Pod>::namespaced(client.clone(), &shop.namespace);
    let accounts = Api::<ServiceAccount>::namespaced(site.cluster.client.clone(), &shop.namespace);
    create(&accounts, named("nb-ada")).await.unwrap();
    let attempt = create(&pods, lab_pod(site.name())).await;
    assert!(attempt.unwrap_err().to_string().contains("is not one of this installation's labs"));
    let secrets = Api::<Secret>::namespaced(client, &shop.namespace);
    assert!(secrets.list(&ListParams::default()).await.unwrap_err().to_string().contains("forbidden"));
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_s_account_deletes_no_revision_without_a_lab() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    let shop = Shop::open(&site, "delete").await;
    shop.deploy("web", 1).await;
    let client = site.account_s_client().await;
    let revisions = Api::<ReplicaSet>::namespaced(client.clone(), &shop.namespace);
    let own = revisions.list(&ListParams::default()).await.unwrap().items.pop().unwrap();
    let attempt = revisions.delete(&own.metadata.name.unwrap(), &DeleteParams::default()).await;
    let refused = attempt.unwrap_err().to_string();
    assert!(refused.contains("may only delete those with a lab"), "{refused}");

    let owner = Api::<ControllerRevision>::namespaced(site.cluster.client.clone(), &shop.namespace);
    let revisions = Api::<ControllerRevision>::namespaced(client, &shop.namespace);
    for (name, data, deletable) in [
        ("plain", json!({ "containers": [{ "name": "db" }] }), false),
        ("with-lab", json!({ "containers": [{ "name": "db" }, { "name": LAB }] }), true),
        ("with-a-part", json!({ "volumes": [{ "name": format!("{LAB}-nss") }] }), true),
        ("similar", json!({ "containers": [{ "name": "lab-of-somebody" }] }), false),
    ] {
        let revision = json!({ "metadata": { "name": name }, "revision": 1,
            "data": { "spec": { "template": { "spec": data } } } });
        owner.create(&PostParams::default(), &serde_json::from_value(revision).unwrap()).await.unwrap();
        let attempt = revisions.delete(name, &DeleteParams::default()).await;
        assert_eq!(attempt.is_ok(), deletable, "{name}: {attempt:?}");
    }
    site.leave().await;
}

/// The messages of the rules about labs in workloads, each shortened to a unique part.
const MOUNT: &str = "mounts no path of the node, Secret";
const VARIABLE: &str = "no variables of Secrets";
const TOKEN: &str = "no token of the workload's account";

/// A web service with volumes of many kinds.
fn with_volumes() -> Value {
    let mut web = deployment("web", 0);
    let token = json!({ "sources": [{ "serviceAccountToken": { "path": "token" } }] });
    web["spec"]["template"]["spec"]["volumes"] = json!([
        { "name": "files", "configMap": { "name": "files" } },
        { "name": "data", "hostPath": { "path": "/var/lib/shop/data" } },
        { "name": "socket", "hostPath": { "path": "/run/containerd/containerd.sock" } },
        { "name": "database", "secret": { "secretName": "database" } },
        { "name": "more", "projected": { "sources": [{ "secret": { "name": "database" } }] } },
        { "name": "identity", "projected": token },
        { "name": "driver", "csi": { "driver": "secrets-store.csi.k8s.io" } },
    ]);
    web
}

/// The web service, and the intruder who puts labs into it.
struct Web {
    stolen: Api<Deployment>,
    admins: Api<Deployment>,
    intruder: Intruder,
}

impl Web {
    async fn open(site: &Site, grants: &[(&str, &str)]) -> Self {
        let namespace = permitted_namespace(site).await;
        site.install_policy_with(grants, "").await;
        let intruder = Intruder::under_the_policy(site).await;
        let admins: Api<Deployment> = Api::namespaced(site.cluster.client.clone(), &namespace);
        create(&admins, with_volumes()).await.unwrap();
        let stolen = intruder.of::<Deployment>(&namespace);
        until(async || stolen.get_opt("web").await.is_ok()).await;
        Self { stolen, admins, intruder }
    }

    /// Tries to put in a lab with this change, without leaving it there.
    async fn attempt(&self, api: &Api<Deployment>, list: &str, change: &Value) -> kube::Result<Deployment> {
        let mut lab = lab_container();
        lab["volumeMounts"] = json!([no_token_mount()]);
        if let Some(mounts) = change.get("volumeMounts") {
            lab["volumeMounts"].as_array_mut().unwrap().extend(mounts.as_array().unwrap().clone());
        }
        for field in ["env", "envFrom"] {
            lab[field] = change[field].clone();
        }
        self.put(api, list, &lab).await
    }

    async fn put(&self, api: &Api<Deployment>, list: &str, lab: &Value) -> kube::Result<Deployment> {
        let spec = json!({ "volumes": [no_token()], (list): [lab] });
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        let patch = Patch::Strategic(json!({ "spec": { "template": { "spec": spec } } }));
        api.patch("web", &dry_run, &patch).await
    }

    async fn allowed(&self, change: &Value) {
        for list in ["containers", "initContainers"] {
            let attempt = self.attempt(&self.stolen, list, change).await;
            attempt.unwrap_or_else(|refusal| panic!("{change}: {refusal}"));
        }
    }

    /// Checks that the rule refuses the change, and that nothing else in the cluster does.
    async fn refused(&self, change: &Value, rule: &str) {
        for list in ["containers", "initContainers"] {
            let admins = self.attempt(&self.admins, list, change).await;
            admins.unwrap_or_else(|refusal| panic!("{change}: {refusal}"));
            let attempt = self.attempt(&self.stolen, list, change).await;
            self.intruder.refused_by(attempt, rule, &change.to_string());
        }
    }

    /// Checks the refusal of a lab without the mount that replaces the token.
    async fn refused_without_mounts(&self, mounts: &Value) {
        let mut lab = lab_container();
        lab["volumeMounts"] = mounts.clone();
        for list in ["containers", "initContainers"] {
            self.put(&self.admins, list, &lab).await.unwrap();
            let attempt = self.put(&self.stolen, list, &lab).await;
            self.intruder.refused_by(attempt, TOKEN, &lab.to_string());
        }
    }
}

fn mounting(volume: &str) -> Value {
    json!({ "volumeMounts": [{ "name": volume, "mountPath": "/theirs" }] })
}

fn variable(secret: &str) -> Value {
    json!({ "env": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": secret, "key": "k" } } }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_gets_nothing_of_a_workload_that_the_site_does_not_grant() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    let web = Web::open(&site, &[]).await;
    web.allowed(&json!({})).await;
    web.allowed(&mounting("files")).await;
    web.allowed(&variable("nb-ada")).await;
    for volume in ["data", "socket", "database", "more", "identity", "driver"] {
        web.refused(&mounting(volume), MOUNT).await;
    }
    web.refused(&variable("database"), VARIABLE).await;
    web.refused(&json!({ "envFrom": [{ "secretRef": { "name": "database" } }] }), VARIABLE).await;
    // Without a mount at that path, Kubernetes mounts the token of the workload's account.
    web.refused_without_mounts(&json!([])).await;
    let own_path = json!({ "name": "files", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount/x" });
    web.refused_without_mounts(&json!([own_path])).await;
    // Volumes of the lab's own.
    for source in [
        json!({ "secret": { "secretName": "database" } }),
        json!({ "projected": { "sources": [{ "secret": { "name": "database" } }] } }),
    ] {
        let mut volume = source.clone();
        volume["name"] = json!(format!("{LAB}-own"));
        let patch = Patch::Strategic(json!({ "spec": { "template": { "spec": { "volumes": [volume] } } } }));
        let attempt = web.stolen.patch("web", &PatchParams::default(), &patch).await;
        web.intruder.refused_by(attempt, MOUNT, &source.to_string());
    }
    // Labs of another installation are not this service's concern.
    let theirs = "lab-fedcba9876";
    let mount = json!([
        { "name": "data", "mountPath": "/data" },
        { "name": format!("{theirs}-secrets"), "mountPath": "/secrets" },
    ]);
    let secrets = json!({ "name": format!("{theirs}-secrets"), "secret": { "secretName": "of-another" } });
    let mut container = lab_container();
    (container["name"], container["volumeMounts"]) = (json!(theirs), mount);
    let put = async |spec: Value| {
        let patch = Patch::Strategic(json!({ "spec": { "template": { "spec": spec } } }));
        web.admins.patch("web", &PatchParams::default(), &patch).await.unwrap()
    };
    put(json!({ "containers": [container], "volumes": [secrets] })).await;
    web.allowed(&json!({})).await;
    // The namespaces of the node, and those of the other containers.
    for field in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"] {
        put(json!({ (field): true })).await;
        web.refused(&json!({}), TOKEN).await;
        put(json!({ (field): null })).await;
    }
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_gets_of_a_workload_what_the_site_grants() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    let grants = [("hostPaths", "'/var/lib/shop(/.*)?'"), ("secrets", "'(tls[.])?nb-.*|database'")];
    let web = Web::open(&site, &grants).await;
    for volume in ["files", "data", "database", "more"] {
        web.allowed(&mounting(volume)).await;
    }
    web.allowed(&variable("database")).await;
    for volume in ["socket", "identity", "driver"] {
        web.refused(&mounting(volume), MOUNT).await;
    }
    web.refused(&variable("other"), VARIABLE).await;
    site.leave().await;
}

/// The volume that replaces the token of the workload's account in a lab.
fn no_token() -> Value {
    json!({ "name": format!("{LAB}-no-token"), "emptyDir": {} })
}

fn no_token_mount() -> Value {
    json!({ "name": format!("{LAB}-no-token"), "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" })
}

/// The name of a lab's container.
const LAB: &str = "lab-0123456789";

/// A lab's container as the service adds it.
fn lab_container() -> Value {
    json!({ "name": LAB, "image": "lab:1", "securityContext": {
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1000,
        "capabilities": { "drop": ["ALL"] }, "seccompProfile": { "type": "RuntimeDefault" },
    } })
}

/// Sets a field, which may be absent, to a value.
fn set(object: &mut Value, path: &str, value: Value) {
    let (parent, key) = path.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key] = value;
}
