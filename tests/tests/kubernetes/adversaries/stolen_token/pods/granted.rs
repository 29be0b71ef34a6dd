//! Pods with a site's grants: these are allowed, and no more.

use k8s_openapi::api::node::v1::RuntimeClass;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use super::attacks::{ACCOUNT, CLASS, FIELD, LABEL, LIFTED, PRIVILEGES, ROOT, SECRET, VOLUME};
use super::{Attack, Pods};
use crate::adversaries::stolen_token::{create, named};
use crate::labs::{assert_permitted, service_with};
use crate::site::{CLUSTER_WIDE, Site};

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
            ("existingAccounts", "'reader|writer'"),
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
        vec![("/spec/serviceAccountName", json!("reader"))],
    ] {
        pods.allowed(&allowed).await;
    }
    for (attack, rule) in [
        (vec![("/spec/containers/0/securityContext", privileged)], PRIVILEGES),
        (vec![("/spec/containers/0/securityContext/runAsUser", json!(0))], ROOT),
        (vec![("/spec/priorityClassName", json!("system-node-critical"))], CLASS),
        (vec![("/spec/serviceAccountName", json!("hub"))], ACCOUNT),
        (vec![("/spec/serviceAccountName", json!("reader-of-all"))], ACCOUNT),
        (vec![("/spec/hostNetwork", json!(true))], FIELD),
    ] {
        pods.refused(&attack, rule).await;
    }
    site.leave().await;
}

/// The container of a lab that is marked as an administrator's, and no other container of no other pod.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_administrators_lab_may_is_allowed_and_no_more() {
    let marked = |mut attack: Attack| {
        attack.push(("/metadata/labels/wasmspawner.io~1lifted", json!("true")));
        attack
    };
    let root =
        json!({ "runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": false, "allowPrivilegeEscalation": true });
    let privileged = json!({ "privileged": true, "allowPrivilegeEscalation": true, "runAsNonRoot": true });
    let scratch = json!([{ "name": "v", "hostPath": { "path": "/scratch/ada" } }]);
    let of_lab = |context: &Value| vec![("/spec/containers/0/securityContext", context.clone())];
    let of_init = |context: &Value| vec![("/spec/initContainers/0/securityContext", context.clone())];
    let with_path = || vec![("/spec/volumes", scratch.clone())];
    for (allowed, variables) in [
        ([true, false, false], [("administratorRoot", "true")]),
        ([false, true, false], [("administratorPrivileged", "true")]),
        ([false, false, true], [("administratorPaths", "'/scratch(/.*)?'")]),
    ] {
        let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
        site.install_policy_with(&variables, "").await;
        let pods = Pods::open(&site).await;
        let asked = [(of_lab(&root), LIFTED), (of_lab(&privileged), LIFTED), (with_path(), VOLUME)];
        for ((attack, rule), allowed) in asked.into_iter().zip(allowed) {
            pods.refused(&attack, if rule == LIFTED { PRIVILEGES } else { rule }).await;
            if allowed {
                pods.allowed(&marked(attack)).await;
            } else {
                pods.refused(&marked(attack), rule).await;
            }
        }
        pods.refused(&marked(of_init(&root)), PRIVILEGES).await;
        pods.refused(&marked(of_init(&privileged)), PRIVILEGES).await;
        let beside = json!({ "name": "beside", "image": "x:1", "securityContext": root });
        pods.refused(&marked(vec![("/spec/containers/-", beside)]), PRIVILEGES).await;
        pods.refused(&marked(vec![("/spec/hostPID", json!(true))]), FIELD).await;
        let etc = json!([{ "name": "v", "hostPath": { "path": "/etc" } }]);
        pods.refused(&marked(vec![("/spec/volumes", etc)]), VOLUME).await;
        let mut more = privileged.clone();
        more["capabilities"] = json!({ "add": ["SYS_ADMIN"] });
        pods.refused(&marked(of_lab(&more)), LIFTED).await;
        site.leave().await;
    }
}

/// A lab starts if the configuration of the service and the admission policy have the same grants. Without those in the
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
            service.logged("a namespace enforces a level of Pod Security").await.unwrap();
        }
        site.leave().await;
    }
}
