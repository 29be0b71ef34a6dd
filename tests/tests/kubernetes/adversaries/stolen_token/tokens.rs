//! Tokens of other accounts, which would outlive the stolen one or permit more, and ways to them: Secrets, roles,
//! namespaces.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use super::{Intruder, create, everything_in, labelled, labels, named, with_level};
use crate::site::{CLUSTER_WIDE, ENVIRONMENTS, Site, until};

const TYPE: &str = "a Secret is of a type that labs need";
const LEVEL: &str = "a namespace enforces a level of Pod Security";
const TOKEN_OF: &str = "kubernetes.io/service-account.name";

/// A Secret that Kubernetes fills with the token of an account.
fn token_of(account: &str, name: &str, labels: &Value) -> Value {
    let mut secret = labelled(name, labels);
    secret["metadata"]["annotations"] = json!({ (TOKEN_OF): account });
    secret["type"] = json!("kubernetes.io/service-account-token");
    secret
}

async fn accounts(site: &Site, namespace: &str, names: &[&str]) {
    let accounts: Api<ServiceAccount> = Api::namespaced(site.cluster.client.clone(), namespace);
    for name in names {
        create(&accounts, named(name)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_gets_the_token_of_an_account() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let stolen = Intruder::under_the_policy(&site).await;
    let (lab, home) = (site.namespace("existing-ada").await, site.name());
    let ours = labels(home);
    let at_home = json!({ "wasmspawner.io/instance": home, "wasmspawner.io/target": "a" });
    accounts(&site, &lab, &["hub", "environment"]).await;
    accounts(&site, home, &["hub"]).await;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    for (namespace, labels, account) in [
        (&*lab, &ours, "hub"),
        (&lab, &ours, "default"),
        (&lab, &ours, "environment"),
        (home, &at_home, "hub"),
        (home, &at_home, "wasmspawner"),
    ] {
        for name in ["nb-ada", "environment"] {
            let secret: Secret = serde_json::from_value(token_of(account, name, labels)).unwrap();
            let admins: Api<Secret> = Api::namespaced(site.cluster.client.clone(), namespace);
            admins.create(&dry_run, &secret).await.expect("nothing else in the cluster refuses it");
            let attempt = stolen.of::<Secret>(namespace).create(&dry_run, &secret).await;
            stolen.refused_by(attempt, TYPE, &format!("the token of {account} in {namespace} as {name}"));
        }
    }
    let secrets: Api<Secret> = stolen.of(&lab);
    for kind in ["kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "helm.sh/release.v1", "example.org/x"]
    {
        let mut secret = labelled("nb-ada", &ours);
        (secret["type"], secret["stringData"]) =
            (json!(kind), json!({ "password": "a", "ssh-privatekey": "b" }));
        stolen.refused_by(create(&secrets, secret).await, TYPE, kind);
    }
    for kind in
        [Value::Null, json!("Opaque"), json!("kubernetes.io/dockerconfigjson"), json!("kubernetes.io/tls")]
    {
        let mut secret = labelled("nb-ada", &ours);
        secret["stringData"] = json!({ ".dockerconfigjson": "{}", "tls.crt": "", "tls.key": "" });
        secret["type"] = kind.clone();
        let attempt = secrets.create(&dry_run, &serde_json::from_value(secret).unwrap()).await;
        attempt.unwrap_or_else(|refusal| panic!("{kind}: {refusal}"));
    }
    // An existing token with the labels of the service is not turned into that of another account.
    let admins: Api<Secret> = Api::namespaced(site.cluster.client.clone(), &lab);
    create(&admins, token_of("environment", "environment", &ours)).await.unwrap();
    let other = Patch::Merge(json!({ "metadata": { "annotations": {
        (TOKEN_OF): "hub", "kubernetes.io/service-account.uid": null } } }));
    let attempt = secrets.patch("environment", &PatchParams::default(), &other).await;
    stolen.refused_by(attempt, TYPE, "the token of another account");
    site.leave().await;
}

/// The refusal holds with the permissions of `deploy/permissions`, and even if somebody gives the account more.
#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_requested_for_any_account() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let (lab, home) = (site.namespace("existing-ada").await, site.name());
    accounts(&site, &lab, &["hub"]).await;
    accounts(&site, home, &["hub"]).await;
    let request = async |stolen: &Intruder, namespace: &str, account: &str| {
        let accounts: Api<ServiceAccount> = stolen.of(namespace);
        accounts.create_token_request(account, &PostParams::default(), &TokenRequest::default()).await
    };
    let under_policy = Intruder::under_the_policy(&site).await;
    let mine: Api<ServiceAccount> = under_policy.of(&lab);
    create(&mine, labelled("nb-ada", &labels(home))).await.expect("what the service does is allowed");
    let all =
        [(&*lab, "nb-ada"), (&lab, "hub"), (home, "hub"), (home, "wasmspawner"), ("kube-system", "default")];
    let without =
        Intruder { client: under_policy.client.clone(), refusal: "cannot create resource".to_owned() };
    for (namespace, account) in all {
        without.refused(request(&without, namespace, account).await, &format!("{namespace}/{account}"));
    }
    let bindings: Api<ClusterRoleBinding> = Api::all(site.cluster.client.clone());
    let mut everything = everything_in(&site);
    let name = format!("{home}-everything");
    everything["metadata"]["name"] = json!(name);
    create(&bindings, everything).await.unwrap();
    until(async || under_policy.of::<Role>(&lab).list(&ListParams::default()).await.is_ok()).await;
    for (namespace, account) in all {
        let attempt = request(&under_policy, namespace, account).await;
        under_policy.refused(attempt, &format!("{namespace}/{account}"));
    }
    bindings.delete(&name, &DeleteParams::default()).await.unwrap();
    site.leave().await;
}

/// The account of an environment may create pods that the admission policy does not see. It is therefore created only
/// in namespaces of environments, and these enforce a level of Pod Security.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_with_permissions_are_made_in_environments_alone() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.apply(ENVIRONMENTS).await;
    site.install_policy_with(
        &[("environments", "['baseline']"), ("podSecurity", "['baseline', 'privileged', '']")],
        "",
    )
    .await;
    let stolen = Intruder::under_the_policy(&site).await;
    let ours = labels(site.name());
    let mut of_target = ours.clone();
    of_target["wasmspawner.io/target"] = json!("11111111-1111-4111-8111-111111111111");
    let name = |suffix: &str| format!("{}-env-{suffix}", site.name());
    let (mine, admins): (Api<Namespace>, Api<Namespace>) =
        (Api::all(stolen.client.clone()), Api::all(site.cluster.client.clone()));

    for namespace in [labelled(&name("a"), &of_target), with_level(&name("a"), &of_target, "privileged")] {
        stolen.refused_by(create(&mine, namespace.clone()).await, LEVEL, &namespace.to_string());
    }
    create(&mine, with_level(&name("good"), &of_target, "baseline"))
        .await
        .expect("what the service does is allowed");
    create(&mine, with_level(&name("lab"), &ours, "privileged"))
        .await
        .expect("what the service does is allowed");

    site.namespace("existing-ada").await;
    create(&admins, labelled(&name("plain"), &ours)).await.unwrap();
    for (namespace, allowed) in
        [(name("good"), true), (name("lab"), false), (format!("{}-existing-ada", site.name()), false)]
    {
        if !allowed {
            // Kubernetes requires the role of a binding to exist.
            let roles: Api<Role> = Api::namespaced(site.cluster.client.clone(), &namespace);
            create(&roles, named("environment")).await.unwrap();
        }
        let binding = {
            let mut binding = labelled("environment", &ours);
            binding["roleRef"] =
                json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "environment" });
            binding["subjects"] =
                json!([{ "kind": "ServiceAccount", "name": "environment", "namespace": namespace }]);
            binding
        };
        let attempts = [
            (
                "account",
                create(&stolen.of::<ServiceAccount>(&namespace), labelled("environment", &ours))
                    .await
                    .map(drop),
            ),
            ("role", create(&stolen.of::<Role>(&namespace), labelled("environment", &ours)).await.map(drop)),
            ("binding", create(&stolen.of::<RoleBinding>(&namespace), binding).await.map(drop)),
            (
                "token",
                create(&stolen.of::<Secret>(&namespace), token_of("environment", "environment", &ours))
                    .await
                    .map(drop),
            ),
        ];
        for (what, attempt) in attempts {
            if allowed {
                attempt.unwrap_or_else(|refusal| panic!("{what} in {namespace}: {refusal}"));
            } else {
                stolen.refused(attempt, &format!("{what} in {namespace}"));
            }
        }
    }
    let secrets = stolen.of::<Secret>(&name("good"));
    for (account, secret) in [("default", "environment"), ("environment", "nb-ada"), ("hub", "environment-2")]
    {
        accounts_exist(&site, &name("good"), account).await;
        let attempt = create(&secrets, token_of(account, secret, &ours)).await;
        stolen.refused_by(attempt, TYPE, &format!("the token of {account} as {secret}"));
    }
    site.leave().await;
}

async fn accounts_exist(site: &Site, namespace: &str, name: &str) {
    let accounts: Api<ServiceAccount> = Api::namespaced(site.cluster.client.clone(), namespace);
    if accounts.get_opt(name).await.unwrap().is_none() {
        create(&accounts, named(name)).await.unwrap();
    }
}

/// Without grants that need it, no namespace allows privileged pods.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_of_a_lab_enforces_a_level_of_pod_security() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_policy().await;
    let stolen = Intruder::under_the_policy(&site).await;
    let ours = labels(site.name());
    let name = format!("{}-delete-ada", site.name());
    let mine: Api<Namespace> = Api::all(stolen.client.clone());
    stolen.refused_by(create(&mine, labelled(&name, &ours)).await, LEVEL, "no level");
    stolen.refused_by(create(&mine, with_level(&name, &ours, "privileged")).await, LEVEL, "privileged");
    let mut target = with_level(&name, &ours, "restricted");
    target["metadata"]["labels"]["wasmspawner.io/target"] = json!("a");
    stolen.refused_by(create(&mine, target).await, LEVEL, "an environment where there are none");
    create(&mine, with_level(&name, &ours, "restricted")).await.expect("what the service does is allowed");
    site.leave().await;
}
