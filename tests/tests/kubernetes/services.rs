//! Labs with a name in DNS: each has a Service in front of it.

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use crate::labs::{assert_permitted, gone, lab_url, service_with, set_lab_service, start};
use crate::site::{ONE_NAMESPACE, Site, until};

const BY_NAME: &str = "http://{name}.{namespace}.svc:{port}";

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_has_a_name_that_means_its_pod_and_goes_with_it() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let labs = site.namespace("labs").await;
    let mut service = service_with(&site, "single", &labs, |config| {
        config["names"]["pod"] = json!("{user_server}");
        config["lab"]["service"] = json!({ "lab_url": BY_NAME });
    });
    service.run().await.unwrap();
    let (ada, eve, admin) =
        (service.user("ada").unwrap(), service.user("eve").unwrap(), service.admin().unwrap());
    start(&ada, "ada").await;
    start(&eve, "eve").await;
    assert_eq!(lab_url(&ada, "ada").await, format!("http://ada.{labs}.svc:8888"));

    let client = site.cluster.client.clone();
    let services: Api<Service> = Api::namespaced(client.clone(), &labs);
    let pods: Api<Pod> = Api::namespaced(client.clone(), &labs);
    let slices: Api<EndpointSlice> = Api::namespaced(client, &labs);
    let spec = services.get("ada").await.unwrap().spec.unwrap();
    assert_eq!(spec.cluster_ip.as_deref(), Some("None"));
    let address = pods.get("ada").await.unwrap().status.unwrap().pod_ip.unwrap();
    let of_ada = ListParams::default().labels("kubernetes.io/service-name=ada");
    until(async || {
        let slices = slices.list(&of_ada).await.unwrap().items;

        let endpoints = slices.into_iter().flat_map(|slice| slice.endpoints.unwrap_or_default());
        endpoints.flat_map(|endpoint| endpoint.addresses).collect::<Vec<_>>() == [address.clone()]
    })
    .await;

    service.crash_and_restart().await.unwrap();
    assert_eq!(lab_url(&ada, "ada").await, format!("http://ada.{labs}.svc:8888"));

    // The Service is deleted with the lab, whatever the configuration says now.
    set_lab_service(&service, &admin, Value::Null).await;
    ada.stop_to_end("ada").await.unwrap();
    gone(&services, "ada").await;
    // A lab that was started without a Service is never looked up under a name.
    start(&ada, "ada").await;
    set_lab_service(&service, &admin, json!({ "lab_url": BY_NAME })).await;
    assert!(!lab_url(&ada, "ada").await.contains("svc"));
    for (user, lab) in [(&ada, "ada"), (&eve, "eve")] {
        user.stop_to_end(lab).await.unwrap();
    }
    assert!(services.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert_permitted(&service);
    site.leave().await;
}

/// Another owner's Service may have the name of a lab's.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_of_somebody_else_is_left_alone() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let labs = site.namespace("labs").await;
    let services: Api<Service> = Api::namespaced(site.cluster.client.clone(), &labs);
    let theirs = json!({ "metadata": { "name": "ada" },
        "spec": { "selector": { "app": "theirs" }, "ports": [{ "port": 80 }] } });
    let before =
        services.create(&PostParams::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();
    let mut service = service_with(&site, "single", &labs, |config| {
        config["names"]["pod"] = json!("{user_server}");
        config["lab"]["service"] = json!({});
    });
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    assert!(events.iter().any(|event| event.data.contains("Service")), "{events:#?}");
    ada.stop_to_end("ada").await.unwrap();
    let after = services.get("ada").await.unwrap();
    assert_eq!(
        (after.metadata.resource_version, after.spec),
        (before.metadata.resource_version, before.spec)
    );
    site.leave().await;
}
