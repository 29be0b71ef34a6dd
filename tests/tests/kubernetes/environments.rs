//! Environments on a real API server, with exactly the permissions for them and under exactly the admission policy.

use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use crate::labs::{assert_permitted, service_with, stop};
use crate::site::{CLUSTER_WIDE, ENVIRONMENTS, Site, until};

pub(crate) fn kind(site: &Site, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("wasmspawner.io", "v1alpha1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    if plural == "deploymenttargetclasses" {
        return Api::all_with(site.cluster.client.clone(), &resource);
    }
    Api::namespaced_with(site.cluster.client.clone(), site.name(), &resource)
}

pub(crate) async fn add(api: &Api<DynamicObject>, object: Value) {
    let mut object = object;
    object["apiVersion"] = "wasmspawner.io/v1alpha1".into();
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn labs_get_environments_with_the_permissions_for_them_and_under_the_admission_policy() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.apply(ENVIRONMENTS).await;
    site.install_definition().await;
    site.install_policy_with(&[("environments", "['baseline']")], "").await;
    let template = format!("{}-delete-{{user_server}}", site.name());
    let mut service = service_with(&site, "delete", &template, |config| {
        config["environments"] = json!({ "default_class": site.name() });
    });
    service.run().await.unwrap();
    let classes = kind(&site, "DeploymentTargetClass", "deploymenttargetclasses");
    add(
        &classes,
        json!({"kind": "DeploymentTargetClass", "metadata": {"name": site.name()}, "spec": {
            "provisioner": "wasmspawner.io/namespace", "reclaimPolicy": "Delete",
            "parameters": {"namespacePrefix": format!("{}-env-", &site.name()[..24.min(site.name().len())]),
                "quota.pods": "10"}}}),
    )
    .await;
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let client = site.cluster.client.clone();
    let namespace = format!("{}-delete-ada", site.name());
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 1);

    its_account_works_in_the_environment_and_nowhere_else(&site, &namespace).await;

    service.crash_and_restart().await.unwrap();
    stop(&service, "ada").await;
    let claims = kind(&site, "DeploymentTargetClaim", "deploymenttargetclaims");
    let targets = kind(&site, "DeploymentTarget", "deploymenttargets");
    until(async || {
        claims.list(&ListParams::default()).await.unwrap().items.is_empty()
            && targets.list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
    let namespaces = Api::<Namespace>::all(client.clone());
    assert!(namespaces.get_opt(&namespace).await.unwrap().is_none());
    let credentials = Api::<Secret>::namespaced(client.clone(), site.name());
    let left = credentials.list(&ListParams::default().labels("wasmspawner.io/target")).await.unwrap();
    assert!(left.items.is_empty(), "the credentials go with the target");
    assert_permitted(&service);
    classes.delete(site.name(), &DeleteParams::default()).await.unwrap();
    site.leave().await;
}

/// Checks the permissions of the account by using them.
async fn its_account_works_in_the_environment_and_nowhere_else(site: &Site, namespace: &str) {
    let targets = kind(site, "DeploymentTarget", "deploymenttargets");
    let target = targets.list(&ListParams::default()).await.unwrap().items.remove(0);
    let credentials = &target.data["spec"]["kubernetesCredentials"];
    assert_eq!(credentials["defaultNamespace"], namespace);
    let secret = credentials["clusterCredentialsSecret"].as_str().unwrap();
    let secrets = Api::<Secret>::namespaced(site.cluster.client.clone(), site.name());
    let data = secrets.get(secret).await.unwrap().data.unwrap();
    let kubeconfig = String::from_utf8(data["kubeconfig"].0.clone()).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let account = kube::Client::try_from(config).unwrap();

    let inside = Api::<Pod>::namespaced(account.clone(), namespace);
    assert_eq!(inside.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let secret = json!({"metadata": {"name": "own"}, "stringData": {"a": "b"}});
    let secret = serde_json::from_value(secret).unwrap();
    Api::<Secret>::namespaced(account.clone(), namespace)
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let refused = |answer: kube::Result<()>| match answer {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403, "{status:?}"),
        answer => panic!("it may do that: {answer:?}"),
    };
    let list = ListParams::default();
    refused(Api::<Pod>::namespaced(account.clone(), site.name()).list(&list).await.map(drop));
    refused(Api::<Pod>::all(account.clone()).list(&list).await.map(drop));
    refused(Api::<Node>::all(account.clone()).list(&list).await.map(drop));
    refused(Api::<Namespace>::all(account.clone()).get(namespace).await.map(drop));
    refused(Api::<Secret>::namespaced(account.clone(), namespace).get("own").await.map(drop));
    let elsewhere = Api::<Secret>::namespaced(account, site.name());
    refused(elsewhere.create(&PostParams::default(), &secret).await.map(drop));
}

/// The same cluster again, with other credentials: the objects of a lab there, and the Hub's route to it.
#[tokio::test(flavor = "multi_thread")]
async fn labs_in_another_cluster_have_routes_that_go_with_them() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.apply(ENVIRONMENTS).await;
    site.install_definition().await;
    let template = format!("{}-env-{{user_server}}", site.name());
    let mut service = service_with(&site, "delete", &template, |config| {
        let spec = json!({"rules": [{"http": {"paths": [{"path": "{prefix}", "pathType": "Prefix",
            "backend": {"service": {"name": "{name}", "port": {"number": "{port}"}}}}]}}]});
        config["environments"] = json!({ "default_class": site.name(), "clusters": { "far": {
            "lab_url": "https://labs.far.example.org",
            "route": {"kind": "Ingress", "annotations": {"example.org/lab": "{namespace}/{name}"}, "spec": spec},
        } } });
    });
    let client = site.cluster.client.clone();
    let kubeconfig = std::fs::read_to_string(site.cluster.file()).unwrap();
    let secret = json!({"metadata": {"name": "far"}, "stringData": {"kubeconfig": embedded(&kubeconfig)}});
    let secret = serde_json::from_value(secret).unwrap();
    Api::<Secret>::namespaced(client.clone(), site.name())
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let classes = kind(&site, "DeploymentTargetClass", "deploymenttargetclasses");
    add(
        &classes,
        json!({"kind": "DeploymentTargetClass", "metadata": {"name": site.name()}, "spec": {
            "provisioner": "wasmspawner.io/namespace", "reclaimPolicy": "Retain",
            "parameters": {"credentialsSecret": "far", "credentials": "false"}}}),
    )
    .await;
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    let body = json!({"env": {"JUPYTERHUB_SERVICE_PREFIX": "/user/ada/"}});
    assert_eq!(ada.spawn_with("ada", &body).await.unwrap().status, 303);
    let lab = async || ada.lab("ada").await.unwrap().json().unwrap();
    until(async || lab().await["status"] == "running").await;
    assert_eq!(lab().await["url"], "https://labs.far.example.org");

    let namespace = format!("{}-env-ada", site.name());
    let ingresses = Api::<Ingress>::namespaced(client.clone(), &namespace);
    let services = Api::<Service>::namespaced(client.clone(), &namespace);
    let ingress = ingresses.get("nb-ada").await.unwrap();
    assert_eq!(ingress.metadata.annotations.unwrap()["example.org/lab"], format!("{namespace}/nb-ada"));
    let rule = serde_json::to_value(ingress.spec.unwrap().rules.unwrap()).unwrap();
    let path = &rule[0]["http"]["paths"][0];
    assert_eq!(
        (&path["path"], &path["backend"]["service"]["port"]["number"]),
        (&json!("/user/ada/"), &json!(8888))
    );
    let selector = services.get("nb-ada").await.unwrap().spec.unwrap().selector.unwrap();
    let selector = format!("wasmspawner.io/spawn={}", selector["wasmspawner.io/spawn"]);
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    assert_eq!(pods.list(&ListParams::default().labels(&selector)).await.unwrap().items.len(), 1);

    stop(&service, "ada").await;
    until(async || ingresses.get_opt("nb-ada").await.unwrap().is_none()).await;
    until(async || services.get_opt("nb-ada").await.unwrap().is_none()).await;
    assert!(
        Api::<Namespace>::all(client).get_opt(&namespace).await.unwrap().is_some(),
        "its class retains it"
    );
    classes.delete(site.name(), &DeleteParams::default()).await.unwrap();
    site.leave().await;
}

/// A target with each defect, and one that has none. All of them lead to the same cluster with other credentials.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_in_which_labs_cannot_run_says_why() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.apply(ENVIRONMENTS).await;
    site.install_definition().await;
    let client = site.cluster.client.clone();
    let kubeconfig = std::fs::read_to_string(site.cluster.file()).unwrap();
    let whole = embedded(&kubeconfig);
    let namespace = format!("{}-brought", site.name());
    let brought = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &brought).await.unwrap();
    let account = serde_json::from_value(json!({"metadata": {"name": "powerless"}})).unwrap();
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &namespace);
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let (params, request) = (PostParams::default(), TokenRequest::default());
    let issued = accounts.create_token_request("powerless", &params, &request).await;
    let powerless = with_token(&whole, &issued.unwrap().status.unwrap().token.unwrap());
    let secrets = Api::<Secret>::namespaced(client.clone(), site.name());
    for (name, key, value) in [
        ("whole", "kubeconfig", whole.as_str()),
        ("garbage", "kubeconfig", "{"),
        ("program", "kubeconfig", "{users: [{name: u, user: {exec: {command: sh, apiVersion: v1}}}]}"),
        ("other-key", "password", "secret"),
        ("expired", "kubeconfig", &with_token(&whole, "eyJhbGciOiJub25lIn0.e30.")),
        ("powerless", "kubeconfig", &powerless),
    ] {
        let secret = json!({"metadata": {"name": name}, "stringData": {key: value}});
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    }
    let template = format!("{}-env-{{user_server}}", site.name());
    let mut service = service_with(&site, "delete", &template, |config| config["environments"] = json!({}));
    let targets = kind(&site, "DeploymentTarget", "deploymenttargets");
    let cases = [
        ("whole", &namespace, "whole", "Available", None),
        ("no-secret", &namespace, "missing", "Failed", Some(("SecretNotFound", "The Secret missing"))),
        ("garbage", &namespace, "garbage", "Failed", Some(("InvalidCredentials", "the Secret garbage"))),
        ("program", &namespace, "program", "Failed", Some(("InvalidCredentials", "a program (`exec`)"))),
        ("other-key", &namespace, "other-key", "Failed", Some(("InvalidCredentials", "no `kubeconfig`"))),
        ("expired", &namespace, "expired", "Failed", Some(("Unauthorized", "the Secret expired"))),
        (
            "nowhere",
            &format!("{namespace}-nowhere"),
            "whole",
            "Failed",
            Some(("NamespaceNotFound", "-nowhere")),
        ),
        ("powerless", &namespace, "powerless", "Failed", Some(("MissingPermissions", "create pods"))),
    ];
    for (name, namespace, secret, ..) in &cases {
        add(
            &targets,
            json!({"kind": "DeploymentTarget", "metadata": {"name": name}, "spec": {"kubernetesCredentials": {
                "defaultNamespace": namespace, "clusterCredentialsSecret": secret}}}),
        )
        .await;
    }
    service.run().await.unwrap();
    for (name, _, _, phase, said) in &cases {
        until(async || targets.get(name).await.unwrap().data["status"]["phase"] == *phase).await;
        let status = targets.get(name).await.unwrap().data["status"].take();
        let condition = &status["conditions"][0];
        match said {
            None => assert!(condition.is_null(), "{name}: {status}"),
            Some((reason, part)) => {
                assert_eq!(condition["reason"], *reason, "{name}: {status}");
                assert!(condition["message"].as_str().unwrap().contains(part), "{name}: {status}");
            }
        }
        assert!(!status.to_string().contains("eyJ"), "{name} repeats a token: {status}");
    }
    site.leave().await;
}

/// The kubeconfig with a token instead of its other credentials.
fn with_token(kubeconfig: &str, token: &str) -> String {
    let mut config: Value = serde_json::from_str(kubeconfig).unwrap();
    config["users"][0]["user"] = json!({ "token": token });
    config.to_string()
}

/// The kubeconfig with the contents of the files that it names.
pub(crate) fn embedded(kubeconfig: &str) -> String {
    let mut config = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let encoded = |file: &str| {
        let encoded = serde_json::to_value(ByteString(std::fs::read(file).unwrap())).unwrap();
        encoded.as_str().unwrap().to_owned()
    };
    for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        if let Some(file) = cluster.certificate_authority.take() {
            cluster.certificate_authority_data = Some(encoded(&file));
        }
    }
    serde_json::to_string(&config).unwrap()
}
