//! `/retained`: objects that stay on purpose when labs end.

use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

use crate::BINARY;

/// Labs in namespaces that stay, with one claim that is deleted with the server and one that stays.
fn retained(config: &mut Value) {
    let claim = |name: &str, reclaim: &str| {
        json!({ "name": name, "claim": { "name": format!("{name}-{{username}}"),
            "create": { "storage": "1Gi", "on_server_deletion": reclaim } } })
    };
    config["kubernetes"] = json!({ "namespaces": "retain" });
    config["names"] = json!({ "namespace": "labs-{username}" });
    config["lab"] = json!({ "image": "lab:1" });
    config["policies"] = json!([{
        "name": "default", "path": guests::component("policy-default"),
        "config": {
            "volumes": [claim("home", "retain"), claim("scratch", "delete")],
            "mounts": [{ "volume": "home", "path": "/home/u" }, { "volume": "scratch", "path": "/scratch" }],
        },
    }]);
}

/// Kind, name, owners, use, and the reason.
async fn listed(admin: &Client) -> Vec<Value> {
    let answer = admin.get(&format!("{PREFIX}/retained")).await.unwrap().json().unwrap();
    let told = |one: &Value| json!([one["kind"], one["name"], one["owners"], one["in_use"], one["reason"]]);
    answer.as_array().unwrap().iter().map(told).collect()
}

#[tokio::test]
async fn what_stays_when_labs_end_is_listed_with_the_reason() {
    let mut service = Service::start_with(BINARY, retained).await.unwrap();
    let (ada, admin) = (service.user("ada").unwrap(), service.admin().unwrap());
    assert!(listed(&admin).await.is_empty());
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let expected = |in_use: bool| {
        [
            json!(["Namespace", "labs-ada", [], in_use, "namespaces_stay"]),
            json!(["PersistentVolumeClaim", "home-ada", ["ada"], in_use, "retained"]),
            json!(["PersistentVolumeClaim", "scratch-ada", ["ada"], in_use, "until_server_is_deleted"]),
        ]
    };
    assert_eq!(listed(&admin).await, expected(true));
    ada.stop_to_end("ada").await.unwrap();
    assert_eq!(listed(&admin).await, expected(false));
    service.crash_and_restart().await.unwrap();
    assert_eq!(listed(&admin).await, expected(false), "after a restart, too");

    // JupyterHub does this when it deletes the server.
    let hub = service.hub().unwrap();
    let release = hub.request(http::Method::DELETE, &format!("{PREFIX}/labs/ada/volumes"));
    assert_eq!(hub.send(release).await.unwrap().status, 200);
    assert_eq!(listed(&admin).await, expected(false)[..2]);
    assert_eq!(ada.get(&format!("{PREFIX}/retained")).await.unwrap().status, 403);
}

#[tokio::test]
async fn nothing_stays_of_labs_whose_namespaces_are_deleted() {
    let service = Service::start(BINARY).await.unwrap();
    let (ada, admin) = (service.user("ada").unwrap(), service.admin().unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    assert!(listed(&admin).await.is_empty());
    ada.stop_to_end("ada").await.unwrap();
    assert!(listed(&admin).await.is_empty());
}
