//! A cluster that is prepared for the service as `deploy/README.md` describes.

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wasmspawner_embedded::kubelet::{AddressRange, Kubelet, KubeletOptions, Runtime, SimulatedOptions};
use wasmspawner_tests::kubernetes::{Cluster, records, remove_definition};

pub(crate) const CLUSTER_WIDE: &str = include_str!("../../../deploy/permissions/cluster-wide.yaml");
pub(crate) const ONE_NAMESPACE: &str = include_str!("../../../deploy/permissions/one-namespace.yaml");
pub(crate) const NODES: &str = include_str!("../../../deploy/permissions/nodes.yaml");
pub(crate) const ENVIRONMENTS: &str = include_str!("../../../deploy/permissions/environments.yaml");
pub(crate) const PREPULL: &str = include_str!("../../../deploy/permissions/prepull.yaml");
const POLICY: &str = include_str!("../../../deploy/admission-policy.yaml");
const DEFINITION: &str = include_str!("../../../deploy/crds.yaml");
pub(crate) const NODE: &str = "wasmspawner-test";

/// A cluster with a node, and with an account in its own namespace that has the permissions of the service.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    /// A token of the service's account.
    pub(crate) token: String,
    stop: CancellationToken,
    kubelet: JoinHandle<()>,
}

impl Site {
    /// Prepares the cluster with the permissions in a file of `deploy/permissions`. `None` without a cluster.
    pub(crate) async fn enter(permissions: &str) -> Option<Self> {
        let cluster = Cluster::enter("wasmspawner").await.unwrap()?;
        // An earlier test may have failed and left both behind.
        remove_definition(cluster.client.clone()).await.unwrap();
        let nodes: Api<Node> = Api::all(cluster.client.clone());
        let _ = nodes.delete(NODE, &DeleteParams::default()).await;
        assert!(
            !cluster.has_nodes().await.unwrap(),
            "these tests need a cluster without nodes, because a scheduler does not know ours"
        );
        let mut options = KubeletOptions::new(NODE, Runtime::Simulated(SimulatedOptions::default()));
        // Kubernetes has no endpoints of Services on the loopback interface.
        options.pod_addresses = AddressRange::new(Ipv4Addr::new(10, 101, 0, 0), 16);
        let kubelet = Kubelet::new(cluster.client.clone(), options).unwrap();
        let stop = CancellationToken::new();
        let kubelet = tokio::spawn(kubelet.run(stop.clone()));
        let mut site = Self { cluster, token: String::new(), stop, kubelet };
        site.token = site.account(permissions).await;
        Some(site)
    }

    /// The service's own namespace. All other names in the cluster begin with it.
    pub(crate) fn name(&self) -> &str {
        &self.cluster.namespace
    }

    /// A client with the permissions of the service.
    pub(crate) async fn account_s_client(&self) -> kube::Client {
        self.cluster.client_of(&self.token).await.unwrap()
    }

    /// The records of labs.
    pub(crate) fn spawns(&self) -> Api<DynamicObject> {
        records(self.cluster.client.clone(), self.name())
    }

    /// Creates a namespace as an operator does, or finds it; returns its name.
    pub(crate) async fn namespace(&self, suffix: &str) -> String {
        let name = format!("{}-{suffix}", self.name());
        let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
        if namespaces.get_opt(&name).await.unwrap().is_none() {
            let namespace = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
            namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        }
        name
    }

    /// Installs `deploy/crds.yaml`.
    pub(crate) async fn install_definition(&self) {
        let all: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(DEFINITION).unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(self.cluster.client.clone());
        for definition in &all {
            definitions.create(&PostParams::default(), definition).await.unwrap();
        }
        for definition in all {
            let name = definition.metadata.name.unwrap();
            let conditions = async || {
                let status = definitions.get(&name).await.unwrap().status;
                status.and_then(|status| status.conditions).unwrap_or_default()
            };
            let is = |found: &CustomResourceDefinitionCondition, kind: &str| {
                found.type_ == kind && found.status == "True"
            };
            until(async || conditions().await.iter().any(|found| is(found, "Established"))).await;
            let found = conditions().await;
            assert!(!found.iter().any(|found| is(found, "NonStructuralSchema")), "{name}: {found:?}");
        }
        until(async || self.spawns().list(&ListParams::default()).await.is_ok()).await;
    }

    /// Installs `deploy/admission-policy.yaml`, and waits until it is in force. The namespaces of labs begin with
    /// `delete-` or `retain-` after the name of the site, and those of operators with `existing-` or `labs`.
    pub(crate) async fn install_policy(&self) {
        self.install_policy_with(&[], "").await;
    }

    /// Installs the policy with other expressions for some of its variables, and with `more` validations.
    pub(crate) async fn install_policy_with(&self, grants: &[(&str, &str)], more: &str) {
        let name = self.name();
        let mut text = POLICY.replacen("\n---\n", &format!("\n{more}---\n"), 1);
        for (written, here) in [
            ("serviceaccount:wasmspawner:wasmspawner'", format!("serviceaccount:{name}:wasmspawner'")),
            ("policyName: wasmspawner", format!("policyName: {name}")),
        ] {
            assert_eq!(text.matches(written).count(), 1, "{written}");
            text = text.replace(written, &here);
        }
        let names = [
            ("created", format!("'{name}-(delete|retain|env)-.*'")),
            ("existing", format!("'{name}-(existing-.*|labs)'")),
            ("workloads", format!("'{name}-shop'")),
            ("instance", format!("'{name}'")),
        ];
        let names = names.iter().map(|(variable, expression)| (*variable, expression.as_str()));
        for (variable, expression) in names.chain(grants.iter().copied()) {
            text = with_variable(&text, variable, expression);
        }
        self.apply(&text).await;
        self.until_in_force().await;
    }

    /// Waits until the policy refuses something.
    async fn until_in_force(&self) {
        let maps: Api<ConfigMap> = Api::namespaced(self.account_s_client().await, self.name());
        let attempt = serde_json::from_value(json!({ "metadata": { "name": "no-record" } })).unwrap();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        // Before the role is known, the account is refused for a different reason.
        let refusal = format!("ValidatingAdmissionPolicy '{}'", self.name());
        let refused = async || {
            maps.create(&dry_run, &attempt).await.is_err_and(|error| error.to_string().contains(&refusal))
        };
        until(refused).await;
    }

    /// Removes the objects that the test has created.
    pub(crate) async fn leave(mut self) {
        self.stop.cancel();
        (&mut self.kubelet).await.unwrap();
        let client = self.cluster.client.clone();
        remove_definition(client.clone()).await.unwrap();
        Api::<Node>::all(client.clone()).delete(NODE, &DeleteParams::default()).await.unwrap();
        for kind in [
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
            ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
        ] {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(kind.0, "v1", kind.1));
            let objects: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
            for suffix in ["", "-nodes", "-environments", "-certificates", "-logs"] {
                let name = format!("{}{suffix}", self.name());
                if objects.get_opt(&name).await.unwrap().is_some() {
                    objects.delete(&name, &DeleteParams::default()).await.unwrap();
                }
            }
        }
        // Another test may have a namespace that no client's library can read.
        let all = http::Request::get("/api/v1/namespaces").body(Vec::new()).unwrap();
        let all: Value = client.request(all).await.unwrap();
        let namespaces: Api<Namespace> = Api::all(client);
        let names =
            all["items"].as_array().unwrap().iter().filter_map(|one| one["metadata"]["name"].as_str());
        for name in names.filter(|name| name.starts_with(&format!("{}-", self.name()))) {
            let _ = namespaces.delete(name, &DeleteParams::default()).await;
        }
        self.cluster.leave().await.unwrap();
    }

    /// Creates the account with the permissions of a file. Returns a token of it.
    async fn account(&self, permissions: &str) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.client.clone(), self.name());
        let account = serde_json::from_value(json!({ "metadata": { "name": "wasmspawner" } })).unwrap();
        accounts.create(&PostParams::default(), &account).await.unwrap();
        self.apply(permissions).await;
        let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let token =
            accounts.create_token_request("wasmspawner", &PostParams::default(), &request).await.unwrap();
        token.status.unwrap().token.unwrap()
    }

    /// Creates the objects of a file in `deploy`.
    pub(crate) async fn apply(&self, file: &str) {
        for object in self.renamed(file) {
            let kind = object.types.clone().unwrap();
            let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(kind).unwrap());
            let api: Api<DynamicObject> = match &object.metadata.namespace {
                Some(namespace) => {
                    self.namespace_of(namespace).await;
                    Api::namespaced_with(self.cluster.client.clone(), namespace, &kind)
                }
                None => Api::all_with(self.cluster.client.clone(), &kind),
            };
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    }

    async fn namespace_of(&self, namespace: &str) {
        if let Some(suffix) = namespace.strip_prefix(&format!("{}-", self.name())) {
            self.namespace(suffix).await;
        }
    }

    /// The objects of a file, with the name of the test's namespace in place of `wasmspawner`. Cluster-wide objects get
    /// that name, too.
    fn renamed(&self, file: &str) -> Vec<DynamicObject> {
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(file).unwrap();
        let rename = |name: &mut Value| {
            *name = json!(name.as_str().unwrap().replacen("wasmspawner", self.name(), 1));
        };
        for object in &mut objects {
            match object.pointer_mut("/metadata/namespace") {
                Some(namespace) => rename(namespace),
                None => rename(&mut object["metadata"]["name"]),
            }
            if object["roleRef"]["kind"] == "ClusterRole" {
                rename(&mut object["roleRef"]["name"]);
            }
            if let Some(subject) = object.pointer_mut("/subjects/0/namespace") {
                rename(subject);
            }
        }
        objects.into_iter().map(|object| serde_json::from_value(object).unwrap()).collect()
    }
}

/// The policy with another expression for a variable that is written on one line.
fn with_variable(policy: &str, variable: &str, expression: &str) -> String {
    let begin = format!("- {{name: {variable}, expression: ");
    let lines = policy.lines().map(|line| {
        let line = if line.trim_start().starts_with(&begin) {
            format!("    {begin}{}}}", json!(expression))
        } else {
            line.to_owned()
        };
        line + "\n"
    });
    assert_eq!(policy.matches(&begin).count(), 1, "{variable}");
    lines.collect()
}

/// Waits until the condition holds, for a minute at most. Panics otherwise.
pub(crate) async fn until(is_so: impl AsyncFnMut() -> bool) {
    assert!(until_within_a_minute(is_so).await, "it was not so within a minute");
}

/// Returns true if the condition holds within a minute.
pub(crate) async fn until_within_a_minute(mut is_so: impl AsyncFnMut() -> bool) -> bool {
    let mut again = tokio::time::interval(Duration::from_millis(100));
    let waiting = async {
        while !is_so().await {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.is_ok()
}
