//! The configurations that are measured.

use serde_json::{Value, json};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

use crate::BINARY;

/// A running service on the one-machine cluster, whose pods start without delay unless the username says otherwise.
pub(crate) async fn one_machine(policy: Value) -> anyhow::Result<Service> {
    Service::start_with(BINARY, |config| {
        config["embedded"]["simulated"] = json!({ "ready": "0s" });
        // The certificate of the one-machine cluster is for this address.
        config["embedded"]["listen"] = json!("127.0.0.1:0");
        many_people_have_this_address(config);
        config["telemetry"] = json!({});
        config["policies"] = json!([policy]);
    })
    .await
}

/// All clients of a benchmark come from one address, so limits by address do not hold for it.
fn many_people_have_this_address(config: &mut Value) {
    config["http"]["proxies"] = json!(["127.0.0.0/8"]);
}

/// A service for the cluster of a kubeconfig, not started yet. It has no limit on requests, because that limit is not
/// measured.
pub(crate) fn on_cluster(
    kubeconfig: &str,
    namespace: &str,
    instance: &str,
    change: impl FnOnce(&mut Value),
) -> anyhow::Result<Service> {
    let service = Service::prepare(BINARY, |_| {})?;
    let file = service.folder().join("kubeconfig");
    std::fs::write(&file, kubeconfig)?;
    service.reconfigure(|config| {
        config.as_object_mut().map(|config| config.remove("embedded"));
        config["kubernetes"] = json!({
            "kubeconfig": file,
            "namespace": namespace,
            "instance": instance,
            "requests_per_second": null,
            // Each round begins with an empty cluster.
            "delete_namespaces_after": "0s",
        });
        config["names"] = json!({ "namespace": format!("{instance}-{{user_server}}") });
        many_people_have_this_address(config);
        config["telemetry"] = json!({});
        config["policies"] = json!([ordinary()]);
        change(config);
    })?;
    Ok(service)
}

/// The policy `default` with the configuration of an ordinary site.
pub(crate) fn ordinary() -> Value {
    json!({
        "name": "site",
        "path": guests::component("policy-default"),
        "config": {
            "images": [{ "name": "minimal", "reference": "lab:1" }, { "name": "scipy", "reference": "lab:2" }],
            "sizes": [{ "name": "small", "cpu": 1, "memory": "2Gi" }, { "name": "large", "cpu": 4, "memory": "8Gi" }],
            "env": { "DOCS_URL": "https://docs.example.org" },
            "volumes": [{ "name": "home", "nfs": { "server": "nfs.example.org", "path": "/export/home" } }],
            "mounts": [{ "volume": "home", "path": "/home/jovyan", "sub_path": "{username}" }],
        },
    })
}
