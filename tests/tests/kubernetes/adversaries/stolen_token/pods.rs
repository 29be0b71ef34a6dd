//! Pods that somebody with the token of the service's account tries to start, and changes of pods that run.

use k8s_openapi::api::core::v1::{Binding, PersistentVolumeClaim, Pod, ServiceAccount};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use super::{Intruder, create, everything_in, labelled, labels, named};
use crate::labs::{assert_permitted, service_with};
use crate::site::{CLUSTER_WIDE, Site, until};

/// The messages of the rules, each shortened to what no other has.
const LABEL: &str = "a label of JupyterHub's own pods";
const FIELD: &str = "a pod has a field";
const CLASS: &str = "a priority class or a runtime class";
const ACCOUNT: &str = "the service account of a lab";
const VOLUME: &str = "a volume of a kind";
const SECRET: &str = "a Secret that is neither";
const SETTINGS: &str = "kernel settings or a security profile";
const PRIVILEGES: &str = "has privileges that the site does not grant";
const ROOT: &str = "runs as root or with capabilities";
const NODE: &str = "a port or device of the node";

const CONTAINERS: &str = "/spec/containers";
const INIT_CONTAINERS: &str = "/spec/initContainers";

/// A change of a lab's pod: values, each at a JSON pointer.
type Attack = Vec<(&'static str, Value)>;

/// What a pod as a whole may not have, and the rule that refuses it.
fn of_pods() -> Vec<(Attack, &'static str)> {
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = json!("v");
        vec![("/spec/volumes", json!([volume]))]
    };
    let token = |audience: Value| {
        let token = json!({ "path": "token", "expirationSeconds": 3600, "audience": audience });
        volume(json!({ "projected": { "sources": [{ "serviceAccountToken": token }] } }))
    };
    let claim = json!({ "spec": { "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } } });
    vec![
        (vec![("/metadata/labels/component", json!("hub"))], LABEL),
        (vec![("/spec/hostNetwork", json!(true))], FIELD),
        (vec![("/spec/hostPID", json!(true))], FIELD),
        (vec![("/spec/hostIPC", json!(true))], FIELD),
        (vec![("/spec/nodeName", json!("control-plane"))], FIELD),
        (vec![("/spec/os", json!({ "name": "linux" }))], FIELD),
        (vec![("/spec/priorityClassName", json!("system-node-critical"))], CLASS),
        (vec![("/spec/serviceAccountName", json!("hub"))], ACCOUNT),
        (vec![("/spec/serviceAccountName", json!("default"))], ACCOUNT),
        (vec![("/spec/serviceAccountName", json!("environment"))], ACCOUNT),
        (vec![("/spec/automountServiceAccountToken", json!(true))], ACCOUNT),
        (vec![("/spec/automountServiceAccountToken", Value::Null)], ACCOUNT),
        (token(Value::Null), ACCOUNT),
        (token(json!("vault")), ACCOUNT),
        (volume(json!({ "hostPath": { "path": "/" } })), VOLUME),
        (volume(json!({ "hostPath": { "path": "/var/run/containerd/containerd.sock" } })), VOLUME),
        (volume(json!({ "csi": { "driver": "secrets-store.csi.k8s.io" } })), VOLUME),
        (volume(json!({ "ephemeral": { "volumeClaimTemplate": claim } })), VOLUME),
        (
            volume(json!({ "iscsi": { "targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.org:a", "lun": 0 } })),
            VOLUME,
        ),
        (volume(json!({ "secret": { "secretName": "hub" } })), SECRET),
        (volume(json!({ "projected": { "sources": [{ "secret": { "name": "hub" } }] } })), SECRET),
        (vec![("/spec/securityContext", Value::Null)], SETTINGS),
        (vec![("/spec/securityContext/runAsNonRoot", Value::Null)], SETTINGS),
        (vec![("/spec/securityContext/runAsUser", json!(0))], SETTINGS),
        (
            vec![("/spec/securityContext/sysctls", json!([{ "name": "kernel.msgmax", "value": "1" }]))],
            SETTINGS,
        ),
        (vec![("/spec/securityContext/seccompProfile/type", json!("Unconfined"))], SETTINGS),
        (vec![("/spec/securityContext/seccompProfile", Value::Null)], SETTINGS),
        (vec![("/spec/securityContext/appArmorProfile/type", json!("Unconfined"))], SETTINGS),
        (
            vec![
                ("/spec/securityContext/appArmorProfile", Value::Null),
                (
                    "/metadata/annotations",
                    json!({ "container.apparmor.security.beta.kubernetes.io/notebook": "unconfined" }),
                ),
            ],
            SETTINGS,
        ),
        (vec![("/spec/securityContext/seLinuxOptions", json!({ "type": "spc_t" }))], SETTINGS),
        (
            vec![("/spec/securityContext/windowsOptions", json!({ "runAsUserName": "Administrator" }))],
            SETTINGS,
        ),
    ]
}

/// What a container may not have, and the rule that refuses it. The pointers are those in the container.
fn of_containers() -> Vec<(Attack, &'static str)> {
    let probe = |action: &str| json!({ (action): { "host": "10.0.0.1", "port": 6443 } });
    let hook = |action: &str| json!({ "postStart": probe(action) });
    let privileged =
        json!({ "privileged": true, "capabilities": { "drop": ["ALL"] }, "allowPrivilegeEscalation": true });
    vec![
        (vec![("/securityContext", Value::Null)], PRIVILEGES),
        (vec![("/securityContext", privileged)], PRIVILEGES),
        (vec![("/securityContext/allowPrivilegeEscalation", json!(true))], PRIVILEGES),
        (vec![("/securityContext/allowPrivilegeEscalation", Value::Null)], PRIVILEGES),
        (vec![("/securityContext/capabilities/add", json!(["NET_RAW"]))], PRIVILEGES),
        (vec![("/securityContext/seccompProfile", json!({ "type": "Unconfined" }))], PRIVILEGES),
        (vec![("/securityContext/appArmorProfile", json!({ "type": "Unconfined" }))], PRIVILEGES),
        (vec![("/securityContext/seLinuxOptions", json!({ "type": "spc_t" }))], PRIVILEGES),
        (vec![("/securityContext/windowsOptions", json!({ "runAsUserName": "Administrator" }))], PRIVILEGES),
        (vec![("/securityContext/runAsUser", json!(0))], ROOT),
        (vec![("/securityContext/runAsNonRoot", json!(false))], ROOT),
        (vec![("/securityContext/capabilities", Value::Null)], ROOT),
        (vec![("/securityContext/capabilities/drop", json!(["NET_RAW"]))], ROOT),
        (vec![("/ports", json!([{ "containerPort": 8888, "hostPort": 8888 }]))], NODE),
        (vec![("/volumeDevices", json!([{ "name": "disk", "devicePath": "/dev/sda" }]))], NODE),
        (vec![("/lifecycle", hook("httpGet"))], NODE),
        (vec![("/lifecycle", hook("tcpSocket"))], NODE),
        (vec![("/startupProbe", probe("httpGet"))], NODE),
        (vec![("/readinessProbe", probe("tcpSocket"))], NODE),
        (vec![("/livenessProbe", probe("httpGet"))], NODE),
        (
            vec![(
                "/env",
                json!([{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "hub", "key": "k" } } }]),
            )],
            SECRET,
        ),
        (vec![("/envFrom", json!([{ "secretRef": { "name": "hub" } }]))], SECRET),
    ]
}

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
    // The privileges of one container are not hidden by another without.
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
    let patch = async |patch: Value| {
        pods.stolen.patch("nb-ada", &PatchParams::default(), &Patch::Strategic(patch)).await
    };
    patch(json!({ "metadata": { "labels": { "a": "b" } } })).await.expect("what the service does is allowed");
    for change in [
        json!({ "containers": [{ "name": "notebook", "image": "other" }] }),
        json!({ "activeDeadlineSeconds": 1 }),
    ] {
        let attempt = patch(json!({ "spec": change })).await;
        pods.intruder.refused_by(attempt, "a pod that exists", &change.to_string());
    }
    let attempt = patch(json!({ "metadata": { "labels": { "component": "hub" } } })).await;
    pods.intruder.refused_by(attempt, LABEL, "the label of the Hub");
    // With permissions for everything, which nobody gives the account, too.
    let bindings: Api<RoleBinding> = Api::namespaced(site.cluster.client.clone(), &pods.namespace);
    create(&bindings, everything_in(&site)).await.unwrap();
    until(async || bindings_known(&pods.intruder, &pods.namespace).await).await;
    let shell = json!({ "name": "shell", "image": "x", "targetContainerName": "notebook" });
    let debug = Patch::Strategic(json!({ "spec": { "ephemeralContainers": [shell] } }));
    let attempt = pods.stolen.patch_ephemeral_containers("nb-ada", &PatchParams::default(), &debug).await;
    pods.intruder.refused(attempt, "an ephemeral container");
    let resize = Patch::Strategic(json!({ "spec": { "containers": [
        { "name": "notebook", "resources": { "limits": { "cpu": "2" }, "requests": { "cpu": "2" } } } ] } }));
    let attempt = pods.stolen.patch_subresource("resize", "nb-ada", &PatchParams::default(), &resize).await;
    pods.intruder.refused(attempt, "another size");
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

#[tokio::test(flavor = "multi_thread")]
async fn what_the_site_grants_is_allowed_and_no_more() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    let classes: Api<RuntimeClass> = Api::all(site.cluster.client.clone());
    let class = site.name().to_owned();
    let mut sandbox = named(&class);
    sandbox["handler"] = json!("gvisor");
    create(&classes, sandbox).await.unwrap();
    site.install_policy_with(
        &[
            ("hostPaths", "'/data(/.*)?|/scratch/[^/]+(/.*)?'"),
            ("runAsRootInit", "true"),
            ("hubLabels", "['component']"),
            ("podPatch", "['spec.nodeName', 'spec.containers.livenessProbe']"),
            ("secrets", "'(tls[.])?nb-.*|database'"),
            ("runtimeClass", &format!("'{class}'")),
            ("addedContainers", "{'istio-init': 'docker[.]io/istio/proxyv2:.*'}"),
            ("tokenAudiences", "['istio-ca']"),
        ],
        "",
    )
    .await;
    let pods = Pods::open(&site).await;
    let sandboxed = |mut attack: Attack| {
        attack.push(("/spec/runtimeClassName", json!(class)));
        attack
    };
    let host_path = |path: &str| {
        sandboxed(vec![("/spec/volumes", json!([{ "name": "v", "hostPath": { "path": path } }]))])
    };
    pods.refused(&vec![], CLASS).await;
    pods.allowed(&sandboxed(vec![])).await;
    for path in ["/data", "/data/", "/data/set/1", "/scratch/ada", "/scratch/ada/x"] {
        pods.allowed(&host_path(path)).await;
    }
    for path in ["/", "/dat", "/database", "/scratch", "/scratch/", "/etc", "//data", "/x/data"] {
        pods.refused(&host_path(path), VOLUME).await;
    }
    let root =
        json!({ "runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": false, "allowPrivilegeEscalation": false });
    pods.allowed(&sandboxed(vec![("/spec/initContainers/0/securityContext", root.clone())])).await;
    pods.refused(&sandboxed(vec![("/spec/containers/0/securityContext", root.clone())]), ROOT).await;
    let mut more = root.clone();
    more["capabilities"] = json!({ "add": ["SYS_ADMIN"] });
    pods.refused(&sandboxed(vec![("/spec/initContainers/0/securityContext", more)]), PRIVILEGES).await;
    let privileged = json!({ "privileged": true, "runAsUser": 0, "runAsNonRoot": false });
    pods.refused(
        &sandboxed(vec![("/spec/initContainers/0/securityContext", privileged.clone())]),
        PRIVILEGES,
    )
    .await;
    pods.allowed(&sandboxed(vec![("/spec/nodeName", json!("gpu-1"))])).await;
    pods.allowed(&sandboxed(vec![("/metadata/labels/component", json!("singleuser-server"))])).await;
    pods.refused(&sandboxed(vec![("/metadata/labels/app", json!("jupyterhub"))]), LABEL).await;
    pods.refused(&sandboxed(vec![("/spec/hostPID", json!(true))]), FIELD).await;
    pods.allowed(&sandboxed(vec![(
        "/spec/volumes",
        json!([{ "name": "v", "secret": { "secretName": "database" } }]),
    )]))
    .await;
    pods.refused(
        &sandboxed(vec![("/spec/volumes", json!([{ "name": "v", "secret": { "secretName": "hub" } }]))]),
        SECRET,
    )
    .await;
    let mesh = |name: &str, image: &str| {
        let container = json!({ "name": name, "image": image, "securityContext": {
            "runAsUser": 0, "runAsNonRoot": false, "capabilities": { "add": ["NET_ADMIN"] } } });
        let token = json!({ "path": "token", "audience": "istio-ca" });
        sandboxed(vec![
            ("/spec/initContainers/-", container),
            (
                "/spec/volumes",
                json!([{ "name": "v", "projected": { "sources": [{ "serviceAccountToken": token }] } }]),
            ),
        ])
    };
    pods.allowed(&mesh("istio-init", "docker.io/istio/proxyv2:1.27")).await;
    pods.refused(&mesh("istio-init", "evil.example.org/docker.io/istio/proxyv2:1.27"), PRIVILEGES).await;
    pods.refused(&mesh("other", "docker.io/istio/proxyv2:1.27"), PRIVILEGES).await;
    classes.delete(&class, &DeleteParams::default()).await.unwrap();
    site.leave().await;
}

/// A privileged step, and the switches of `lab.security`.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_lifted_for_all_labs_is_allowed_and_no_more() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy_with(
        &[
            ("privilegedInit", "true"),
            ("privilegeEscalation", "true"),
            ("defaultCapabilities", "true"),
            ("unconfinedSeccomp", "true"),
            ("serviceAccountToken", "true"),
            ("priorityClasses", "['system-cluster-critical']"),
        ],
        "",
    )
    .await;
    let pods = Pods::open(&site).await;
    let privileged = json!({ "privileged": true, "runAsUser": 0, "runAsNonRoot": false });
    for allowed in [
        vec![("/spec/initContainers/0/securityContext", privileged.clone())],
        vec![("/spec/containers/0/securityContext", json!({ "allowPrivilegeEscalation": true }))],
        vec![("/spec/securityContext/seccompProfile/type", json!("Unconfined"))],
        vec![("/spec/automountServiceAccountToken", json!(true))],
        vec![("/spec/priorityClassName", json!("system-cluster-critical"))],
    ] {
        pods.allowed(&allowed).await;
    }
    for (attack, rule) in [
        (vec![("/spec/containers/0/securityContext", privileged)], PRIVILEGES),
        (vec![("/spec/containers/0/securityContext/runAsUser", json!(0))], ROOT),
        (vec![("/spec/priorityClassName", json!("system-node-critical"))], CLASS),
        (vec![("/spec/serviceAccountName", json!("hub"))], ACCOUNT),
        (vec![("/spec/hostNetwork", json!(true))], FIELD),
    ] {
        pods.refused(&attack, rule).await;
    }
    site.leave().await;
}

/// The same grants in the configuration of the service and in the admission policy make a lab. Without those in the
/// admission policy it fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_lab_with_grants_starts_where_the_admission_policy_has_them_too() {
    for granted in [true, false] {
        let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
        site.install_definition().await;
        let all = [
            ("hostPaths", "'/data(/.*)?'"),
            ("runAsRootInit", "true"),
            ("podSecurity", "['restricted', 'baseline', 'privileged']"),
        ];
        site.install_policy_with(if granted { &all } else { &[] }, "").await;
        let template = format!("{}-delete-{{user_server}}", site.name());
        let mut service = service_with(&site, "delete", &template, |config| {
            let default = &mut config["policies"][0];
            default["grants"] = json!({ "host-path": ["/data"], "run-as-root-init": true });
            let volumes = default["config"]["volumes"].as_array_mut().unwrap();
            volumes.push(json!({ "name": "data", "host_path": "/data/sets" }));
            default["config"]["init_containers"] = json!([{ "name": "own", "image": "busybox:1",
                "command": ["chown", "1000", "/data"], "profile": "baseline",
                "mounts": [{ "volume": "data", "path": "/data" }] }]);
        });
        service.run().await.unwrap();
        let ada = service.user("ada").unwrap();
        let events = ada.spawn_to_end("ada").await.unwrap();
        let end = events.last().unwrap();
        if granted {
            assert_eq!(end.kind, "complete", "{events:#?}");
            assert_permitted(&service);
        } else {
            assert_eq!(end.kind, "failed", "{events:#?}");
            assert!(
                service.log().contains("a namespace enforces a level of Pod Security"),
                "{}",
                service.log()
            );
        }
        site.leave().await;
    }
}

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
        for name in ["nb-ada", "hub", "environment"] {
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

    /// The rule refuses it, and nothing else in the cluster does.
    async fn refused(&self, change: &Attack, rule: &str) {
        let said = format!("{change:?}");
        self.attempt(&self.admins, change).await.unwrap_or_else(|refusal| panic!("{said}: {refusal}"));
        self.intruder.refused_by(self.attempt(&self.stolen, change).await, rule, &said);
    }

    /// A claim gets its volume from the storage class, and takes no data of others.
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

    /// The same for a change of the first container of a list.
    async fn refused_in(&self, list: &str, change: &Attack, rule: &str) {
        let mut containers = self.lab["spec"][list].clone();
        for (pointer, value) in change {
            set(&mut containers[0], pointer, value.clone());
        }
        if list == "initContainers" {
            // Init containers have probes and hooks only if they go on beside the others.
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

/// The pod of a lab as the service makes it, with a step before it.
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

/// Sets the value at a JSON pointer; `-` at its end is the end of a list.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Array(list) => list.push(value),
        parent => parent[key] = value,
    }
}

async fn bindings_known(intruder: &Intruder, namespace: &str) -> bool {
    intruder.of::<RoleBinding>(namespace).list(&kube::api::ListParams::default()).await.is_ok()
}

async fn post<K: serde::Serialize>(pods: &Api<Pod>, subresource: &str, body: &K) -> kube::Result<Value> {
    pods.create_subresource(subresource, "nb-ada", &PostParams::default(), body).await
}
