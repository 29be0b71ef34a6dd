//! Attempts of an attacker who has stolen the token of the service's account.

mod pods;
mod tokens;
mod workloads;

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, PersistentVolumeClaim, Pod, ResourceQuota, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::{SKIPPED, records};

use crate::site::{CLUSTER_WIDE, ONE_NAMESPACE, Site, until};

#[tokio::test(flavor = "multi_thread")]
async fn the_account_for_one_namespace_can_do_nothing_elsewhere() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    let labs = site.namespace("labs").await;
    let stolen = Intruder { client: site.account_s_client().await, refusal: "cannot".to_owned() };
    let (all, one) = (ListParams::default(), ListParams::default().limit(1));
    // The token is valid as soon as the API server knows the role.
    until(async || stolen.of::<Pod>(&labs).list(&all).await.is_ok()).await;

    for namespace in ["default", "kube-system", site.name()] {
        let pods = stolen.of::<Pod>(namespace);
        stolen.refused(pods.list(&all).await, &format!("list pods in {namespace}"));
        stolen.refused(create(&pods, pod("nb-ada", &json!({}))).await, &format!("a pod in {namespace}"));
        let secrets = stolen.of::<Secret>(namespace);
        stolen.refused(secrets.list(&all).await, &format!("list secrets in {namespace}"));
        stolen.refused(create(&secrets, named("a")).await, &format!("a secret in {namespace}"));
    }
    stolen.refused(stolen.of::<Secret>(&labs).list(&all).await, "list secrets of labs");
    stolen.refused(stolen.of::<Secret>(&labs).get("nb-ada").await, "read a lab's secret");
    stolen.refused(create(&stolen.of::<ResourceQuota>(&labs), named("a")).await, "limit the namespace");
    let claims = stolen.of::<PersistentVolumeClaim>(&labs);
    stolen.refused(claims.list(&all).await, "list claims");

    stolen.refused(Api::<Pod>::all(stolen.client.clone()).list(&one).await, "list all pods");
    stolen.refused(Api::<ConfigMap>::all(stolen.client.clone()).list(&one).await, "list all config maps");
    let namespaces: Api<Namespace> = Api::all(stolen.client.clone());
    stolen.refused(namespaces.list(&one).await, "list namespaces");
    stolen.refused(namespaces.get(&labs).await, "read the namespace of labs");
    stolen.refused(create(&namespaces, named("nublado-ada")).await, "create a namespace");
    stolen.refused(namespaces.delete(&labs, &DeleteParams::default()).await, "delete the namespace of labs");
    let definitions: Api<CustomResourceDefinition> = Api::all(stolen.client.clone());
    stolen.refused(definitions.get("spawns.wasmspawner.io").await, "read the definition");
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admission_policy_refuses_namespaces_that_are_not_the_service_s_own() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let stolen = Intruder::under_the_policy(&site).await;
    let (ours, other) = (labels(site.name()), labels("other"));
    let name = |suffix: &str| format!("{}-{suffix}", site.name());
    let mine: Api<Namespace> = Api::all(stolen.client.clone());
    let admins: Api<Namespace> = Api::all(site.cluster.client.clone());

    for (suffix, labels) in
        [("other", &ours), ("delete-a", &json!({})), ("delete-a", &other), ("existing-a", &json!({}))]
    {
        let attempt = create(&mine, with_level(&name(suffix), labels, "baseline")).await;
        stolen.refused(attempt, &format!("create {suffix} with {labels}"));
    }
    // A name that only contains that of a lab's namespace.
    let longer = with_level(&format!("x{}", name("delete-a")), &ours, "baseline");
    stolen.refused(create(&mine, longer).await, "create x-...");

    for (suffix, labels) in [
        ("delete-foreign", &json!({})),
        ("delete-others", &other),
        ("elsewhere", &ours),
        ("existing-labelled", &ours),
    ] {
        let name = name(suffix);
        create(&admins, labelled(&name, labels)).await.unwrap();
        let deleted = mine.delete(&name, &DeleteParams::default()).await;
        stolen.refused(deleted.map(drop), &format!("delete {suffix}"));
        let relabel = Patch::Merge(json!({ "metadata": { "labels": ours, "annotations": { "a": "b" } } }));
        let patched = mine.patch(&name, &PatchParams::default(), &relabel).await;
        assert_forbidden(&patched, &format!("patch {suffix}"));
        assert!(admins.get(&name).await.unwrap().metadata.deletion_timestamp.is_none());
    }

    let own = name("delete-own");
    create(&mine, with_level(&own, &ours, "baseline")).await.expect("what the service does is allowed");
    mine.delete(&own, &DeleteParams::default()).await.expect("what the service does is allowed");
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admission_policy_refuses_objects_that_are_not_the_service_s_own() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let stolen = Intruder::under_the_policy(&site).await;
    let (ours, other) = (labels(site.name()), labels("other"));
    let admin = site.cluster.client.clone();
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let place = async |suffix: &str, labels: &Value| {
        let name = format!("{}-{suffix}", site.name());
        create(&namespaces, labelled(&name, labels)).await.unwrap();
        name
    };
    let lab = place("delete-ada", &ours).await;
    let existing = place("existing-ada", &json!({})).await;
    let others = place("delete-others", &other).await;
    let others_existing = place("existing-others", &other).await;
    let unlabelled = place("delete-unlabelled", &json!({})).await;

    // In namespaces without labs of the service, its labels do not help.
    for namespace in ["default", "kube-system", site.name(), &others, &others_existing, &unlabelled] {
        let created = create(&stolen.of::<Pod>(namespace), pod("nb-ada", &ours)).await;
        if namespace == site.name() {
            stolen.refused(created, "a pod in the service's own namespace");
        } else {
            stolen.refused_by(
                created,
                "is not one of this installation's labs",
                &format!("a pod in {namespace}"),
            );
        }
        let created = create(&stolen.of::<Secret>(namespace), labelled("nb-ada", &ours)).await;
        stolen.refused(created, &format!("a secret in {namespace}"));
    }
    // In namespaces with labs, an object needs the labels, and keeps them.
    for namespace in [&lab, &existing] {
        let (mine, admins): (Api<Secret>, Api<Secret>) =
            (stolen.of(namespace), Api::namespaced(admin.clone(), namespace));
        for labels in [&json!({}), &other] {
            let created = create(&mine, labelled("nb-ada", labels)).await;
            stolen.refused(created, &format!("a secret with {labels} in {namespace}"));
        }
        create(&mine, labelled("nb-ada", &ours)).await.expect("what the service does is allowed");
        let strip = Patch::Merge(json!({ "metadata": { "labels": null } }));
        stolen.refused(mine.patch("nb-ada", &PatchParams::default(), &strip).await, "take the labels off");
        create(&admins, named("site-s")).await.unwrap();
        let every = mine.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
        stolen.refused(every.map(drop), "delete every secret");
        assert!(admins.get_opt("site-s").await.unwrap().is_some());
        let of_labs = ListParams::default().labels("app.kubernetes.io/managed-by=wasmspawner");
        mine.delete_collection(&DeleteParams::default(), &of_labs).await.expect("as the service does");
    }

    // Objects that another client has made in a lab's namespace.
    for labels in [json!({}), other] {
        let pods: Api<Pod> = Api::namespaced(admin.clone(), &lab);
        let name = if labels == json!({}) { "theirs" } else { "others" };
        create(&pods, pod(name, &labels)).await.unwrap();
        let mine: Api<Pod> = stolen.of(&lab);
        let relabel = Patch::Merge(json!({ "metadata": { "labels": ours } }));
        let patched = mine.patch(name, &PatchParams::default(), &relabel).await;
        assert_forbidden(&patched, "label a foreign pod");
        stolen.refused(mine.delete(name, &DeleteParams::default()).await.map(drop), "delete a foreign pod");
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(admin.clone(), &lab);
        let mut claim = labelled(name, &labels);
        claim["spec"] =
            json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
        create(&claims, claim).await.unwrap();
        let deleted = stolen.of::<PersistentVolumeClaim>(&lab).delete(name, &DeleteParams::default()).await;
        stolen.refused(deleted.map(drop), "delete a foreign claim");
        assert!(claims.get(name).await.unwrap().metadata.deletion_timestamp.is_none());
        let theirs = json!({ "metadata": { "annotations": { "a": "b" } } });
        stolen.refused(change_claim(&stolen, &lab, name, theirs).await, "change a foreign claim");
    }
    // Of a claim of its own, the service changes the size alone.
    let mine: Api<PersistentVolumeClaim> = stolen.of(&lab);
    let mut claim = labelled("claim-ada", &ours);
    claim["spec"] =
        json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    create(&mine, claim).await.expect("what the service does is allowed");
    for change in [
        json!({ "metadata": { "annotations": { "wasmspawner.io/username": "eve" } } }),
        json!({ "metadata": { "labels": { "wasmspawner.io/user": "eve" } } }),
        json!({ "metadata": { "finalizers": ["example.org/for-ever"] } }),
        json!({ "spec": { "volumeName": "pv-of-eve" } }),
    ] {
        let changed = change_claim(&stolen, &lab, "claim-ada", change.clone()).await;
        stolen.refused_by(changed, "changes nothing but its size", &change.to_string());
    }
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admission_policy_allows_nothing_but_records_in_the_service_s_namespace() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let stolen = Intruder::under_the_policy(&site).await;
    let admin = site.cluster.client.clone();
    let (mine, admins) = (records(stolen.client.clone(), site.name()), site.spawns());
    let record = |name: &str, instance: &str| {
        let spec = json!({
            "kind": "Lab", "user": name, "desired": "Stopped",
            "operation": {
                "id": "0196f000-0000-7000-8000-000000000001", "kind": "spawn",
                "startedAt": "2026-01-02T03:04:05Z", "deadline": "2026-01-02T03:04:05Z",
            },
            "place": { "namespace": "labs", "pod": "nb-ada" },
            "timeLimits": { "spawnSeconds": 60, "deleteSeconds": 60 },
        });
        let labels = json!({ "wasmspawner.io/instance": instance });
        json!({
            "apiVersion": "wasmspawner.io/v1alpha1", "kind": "Spawn",
            "metadata": { "name": name, "labels": labels }, "spec": spec,
        })
    };
    stolen.refused(create(&mine, record("lab-ada", "other")).await, "another installation's record");
    create(&admins, record("lab-grace", "other")).await.unwrap();
    stolen.refused(mine.delete("lab-grace", &DeleteParams::default()).await.map(drop), "delete it");
    let take = Patch::Merge(json!({ "metadata": { "labels": { "wasmspawner.io/instance": site.name() } } }));
    stolen.refused(mine.patch("lab-grace", &PatchParams::default(), &take).await, "take it over");
    create(&mine, record("lab-ada", site.name())).await.expect("what the service does is allowed");

    let leases: Api<Lease> = stolen.of(site.name());
    let of_others: Api<Lease> = Api::namespaced(admin.clone(), site.name());
    create(&of_others, named("leader-of-something")).await.unwrap();
    let instance = json!({ "wasmspawner.io/instance": site.name() });
    let mut seized = serde_json::to_value(of_others.get("leader-of-something").await.unwrap()).unwrap();
    seized["metadata"]["labels"] = instance.clone();
    seized["spec"] = json!({ "holderIdentity": "intruder" });
    let seized = serde_json::from_value(seized).unwrap();
    let seized = leases.replace("leader-of-something", &PostParams::default(), &seized).await;
    stolen.refused(seized.map(drop), "seize the Lease of another controller");
    stolen.refused(create(&leases, named("another")).await, "a Lease without the labels of the service");
    create(&leases, labelled("wasmspawner", &instance)).await.expect("the service's own Lease");

    let maps: Api<ConfigMap> = stolen.of(site.name());
    stolen.refused(create(&maps, labelled("a", &labels(site.name()))).await, "a lab's config map");
    let records = json!({ "wasmspawner.io/records": "wasmspawner-volumes" });
    create(&maps, labelled("wasmspawner-volumes-00", &records)).await.expect("as the service does");
    let every = maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    stolen.refused(every.map(drop), "delete every config map");
    let theirs: Api<ConfigMap> = Api::namespaced(admin.clone(), site.name());
    create(&theirs, named("site-s")).await.unwrap();
    let take = Patch::Merge(json!({ "metadata": { "labels": records } }));
    stolen.refused(maps.patch("site-s", &PatchParams::default(), &take).await, "change the site's");
    let secrets: Api<Secret> = Api::namespaced(admin, site.name());
    create(&secrets, named("site-s")).await.unwrap();
    let take = Patch::Merge(json!({ "metadata": { "labels": labels(site.name()) } }));
    let patched = stolen.of::<Secret>(site.name()).patch("site-s", &PatchParams::default(), &take).await;
    stolen.refused(patched, "change the site's secret");
    site.leave().await;
}

/// Whoever writes an EndpointSlice says where the requests for its Service go.
#[tokio::test(flavor = "multi_thread")]
async fn of_endpoint_slices_the_service_changes_nothing_but_its_address() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let stolen = Intruder::under_the_policy(&site).await;
    let slices: Api<EndpointSlice> = stolen.of(site.name());
    let slice = |name: &str, of: &str| {
        let labels = json!({ "wasmspawner.io/instance": of, "kubernetes.io/service-name": "wasmspawner" });
        let ports = json!([{ "name": "api", "port": 8090 }]);
        json!({ "metadata": { "name": name, "labels": labels }, "addressType": "IPv4", "ports": ports })
    };
    let of_admin: Api<EndpointSlice> = Api::namespaced(site.cluster.client.clone(), site.name());
    create(&of_admin, slice("wasmspawner", site.name())).await.unwrap();
    create(&of_admin, slice("hub-x7k2p", "other")).await.unwrap();
    let endpoint = |kind: &str, addresses: Value| {
        let target = json!({ "kind": kind, "name": "a", "namespace": site.name(), "uid": "a" });
        json!({ "endpoints": [{ "addresses": addresses, "targetRef": target }] })
    };
    let change = async |name: &str, change: Value| {
        slices.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.map(drop)
    };
    let own = endpoint("Pod", json!(["10.0.0.1"]));
    change("wasmspawner", own.clone()).await.expect("the address of the process that leads");
    change("wasmspawner", json!({ "endpoints": [] })).await.expect("nobody leads any more");
    let hub = json!({ "metadata": { "labels": { "kubernetes.io/service-name": "hub" } } });
    stolen.refused(change("wasmspawner", hub).await, "lead the Hub's requests here");
    let ports = json!({ "ports": [{ "name": "api", "port": 22 }] });
    stolen.refused(change("wasmspawner", ports).await, "another port");
    let two = endpoint("Pod", json!(["10.0.0.1", "10.0.0.2"]));
    stolen.refused(change("wasmspawner", two).await, "a second address");
    stolen.refused(change("wasmspawner", endpoint("Node", json!(["10.0.0.1"]))).await, "a node");
    assert_forbidden(&change("hub-x7k2p", own).await, "the slice of somebody else");
    assert_forbidden(&create(&slices, slice("more", site.name())).await, "another slice");
    site.leave().await;
}

/// The policy holds even if somebody gives the account more permissions than `deploy/permissions` does.
#[tokio::test(flavor = "multi_thread")]
async fn the_admission_policy_refuses_kinds_of_objects_that_labs_do_not_have() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let stolen = Intruder::under_the_policy(&site).await;
    let lab = site.namespace("existing-ada").await;
    let bindings: Api<RoleBinding> = Api::namespaced(site.cluster.client.clone(), &lab);
    create(&bindings, everything_in(&site)).await.unwrap();
    let ours = labels(site.name());
    let roles = stolen.of::<Role>(&lab);
    until(async || roles.list(&ListParams::default()).await.is_ok()).await;
    stolen.refused(create(&roles, labelled("a", &ours)).await, "a role");
    for (spec, allowed) in [
        (json!({ "clusterIP": "None" }), true),
        (json!({}), false),
        (json!({ "type": "NodePort" }), false),
        (json!({ "type": "LoadBalancer" }), false),
        (json!({ "type": "ExternalName", "externalName": "example.org" }), false),
        (json!({ "clusterIP": "None", "externalIPs": ["192.0.2.1"] }), false),
    ] {
        let mut service = labelled("a", &ours);
        service["spec"] = spec.clone();
        service["spec"]["ports"] = json!([{ "port": 80 }]);
        let created = create(&stolen.of::<Service>(&lab), service).await;
        if allowed {
            created.unwrap();
        } else {
            stolen.refused(created, &format!("a Service with {spec}"));
        }
    }
    site.leave().await;
}

/// `deploy/README.md` shows how to forbid something in pods.
#[tokio::test(flavor = "multi_thread")]
async fn a_validation_of_pods_can_be_added_as_the_documentation_says() {
    const PAGE: &str = include_str!("../../../../../deploy/README.md");
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    let example = PAGE.split("```yaml\n").find(|block| block.contains("each.image.startsWith")).unwrap();
    site.install_policy_with(&[], example.split("```").next().unwrap()).await;
    let stolen = Intruder::under_the_policy(&site).await;
    let namespace = site.namespace("existing-ada").await;
    create(&stolen.of::<ServiceAccount>(&namespace), labelled("nb-ada", &labels(site.name()))).await.unwrap();
    let pods: Api<Pod> = stolen.of(&namespace);
    let mut lab = pods::lab_pod(site.name());
    let elsewhere = create(&pods, lab.clone()).await;
    stolen.refused_by(elsewhere, "images of the site's registry", "an image from elsewhere");
    lab["spec"]["containers"][0]["image"] = json!("registry.example.org/lab:1");
    create(&pods, lab).await.unwrap();
    site.leave().await;
}

/// An attacker with the token of the service's account.
pub(crate) struct Intruder {
    client: Client,
    /// The words in the message of every refusal, which identify the refusing policy.
    refusal: String,
}

impl Intruder {
    pub(crate) async fn under_the_policy(site: &Site) -> Self {
        let refusal = format!("ValidatingAdmissionPolicy '{}'", site.name());
        Self { client: site.account_s_client().await, refusal }
    }

    pub(crate) fn of<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Fails unless the rule with this message refuses the attempt.
    #[track_caller]
    fn refused_by<T: Debug>(&self, attempt: kube::Result<T>, rule: &str, what: &str) {
        if let Err(kube::Error::Api(status)) = &attempt {
            assert!(status.message.contains(rule), "{what}: {}", status.message);
        }
        self.refused(attempt, what);
    }

    #[track_caller]
    pub(crate) fn refused<T: Debug>(&self, attempt: kube::Result<T>, what: &str) {
        match attempt {
            Err(kube::Error::Api(status)) if status.code == 403 && status.message.contains(&self.refusal) => {
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// Fails unless the permissions or the policy refuse the attempt.
#[track_caller]
pub(crate) fn assert_forbidden<T: Debug>(attempt: &kube::Result<T>, what: &str) {
    assert!(matches!(attempt, Err(kube::Error::Api(status)) if status.code == 403), "{what}: {attempt:?}");
}

async fn create<K>(api: &Api<K>, object: Value) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await
}

fn labels(instance: &str) -> Value {
    json!({ "app.kubernetes.io/managed-by": "wasmspawner", "wasmspawner.io/instance": instance })
}

/// Lets the service's account do everything in a namespace.
fn everything_in(site: &Site) -> Value {
    let mut binding = named("everything");
    binding["roleRef"] =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" });
    binding["subjects"] =
        json!([{ "kind": "ServiceAccount", "name": "wasmspawner", "namespace": site.name() }]);
    binding
}

/// A namespace that enforces a level of Pod Security.
fn with_level(name: &str, labels: &Value, level: &str) -> Value {
    let mut namespace = labelled(name, labels);
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = json!(level);
    namespace
}

fn labelled(name: &str, labels: &Value) -> Value {
    json!({ "metadata": { "name": name, "labels": labels } })
}

fn named(name: &str) -> Value {
    labelled(name, &json!({}))
}

fn pod(name: &str, labels: &Value) -> Value {
    let mut pod = labelled(name, labels);
    pod["spec"] = json!({ "containers": [{ "name": "notebook", "image": "x" }] });
    pod
}

async fn change_claim(
    stolen: &Intruder,
    namespace: &str,
    name: &str,
    change: Value,
) -> kube::Result<PersistentVolumeClaim> {
    stolen.of(namespace).patch(name, &PatchParams::default(), &Patch::Merge(change)).await
}
