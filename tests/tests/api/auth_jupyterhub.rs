//! `auth.mode: jupyterhub`

use futures::future::join_all;
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::provider::Provider;
use wasmspawner_tests::service::Service;

use crate::BINARY;

async fn hub() -> Provider {
    let user = |name: &str, scopes: Value, groups: Value| json!({ "kind": "user", "name": name, "admin": false, "groups": groups, "scopes": scopes, "auth_state": null });
    Provider::start(&[
        (
            "/hub/api/user",
            "of-ada",
            user("ada", json!(["servers!user=ada", "users!user=ada"]), json!(["physics"])),
        ),
        ("/hub/api/user", "of-root", user("root", json!(["admin:servers", "servers"]), json!([]))),
        (
            "/hub/api/user",
            "in-ada-s-lab",
            user("ada", json!(["users:activity!user=ada", "access:servers!server=ada/"]), json!([])),
        ),
        (
            "/hub/api/user",
            "of-the-hub",
            json!({ "kind": "service", "name": "spawner", "admin": false, "scopes": [] }),
        ),
        ("/hub/api/users/grace", "of-root", user("grace", json!([]), json!(["navy"]))),
    ])
    .await
    .unwrap()
}

async fn service(hub: &Provider) -> Service {
    let auth = json!({
        "mode": "jupyterhub",
        "jupyterhub": {
            "api_url": format!("{}/hub/api", hub.url()),
            "services": { "spawner": ["admin:jupyterhub"] },
        },
        "identities": { "default": { "uid": 2000, "gid": 2000 } },
    });
    Service::start_with(BINARY, |config| config["auth"] = auth).await.unwrap()
}

#[tokio::test]
async fn scopes_of_a_token_come_from_the_hub() {
    let hub = hub().await;
    let service = service(&hub).await;
    let get = |token: &'static str, path: &'static str| {
        let client = service.stranger().with_token(token);
        async move { client.get(&format!("{PREFIX}{path}")).await.unwrap() }
    };
    for (token, path, expected) in [
        ("of-ada", "/labs/ada", 404),
        ("of-ada", "/labs/bob", 403),
        ("of-ada", "/labs", 403),
        ("in-ada-s-lab", "/labs/ada", 403),
        ("of-the-hub", "/labs", 200),
        ("of-the-hub", "/labs/ada", 404),
        ("of-the-hub", "/spawn-form/ada", 403),
        ("of-root", "/labs", 200),
        ("of-root", "/policies", 200),
        ("of-nobody", "/labs/ada", 401),
    ] {
        assert_eq!(get(token, path).await.status, expected, "{token} {path}");
    }
}

#[tokio::test]
async fn groups_come_from_the_hub_and_uids_from_the_configuration() {
    let hub = hub().await;
    let service = service(&hub).await;
    for (token, name, group) in [("of-ada", "ada", "physics"), ("of-root", "grace", "navy")] {
        let client = service.stranger().with_token(token);
        client.spawn_to_end(name).await.unwrap();
        let lab = client.lab(name).await.unwrap().json().unwrap();
        assert_eq!((&lab["uid"], &lab["groups"]), (&json!(2000), &json!([{ "name": group }])), "{lab:#}");
    }
}

#[tokio::test]
async fn parallel_requests_with_one_token_ask_the_hub_once() {
    let hub = hub().await;
    let service = service(&hub).await;
    let ada = service.stranger().with_token("of-ada");
    let answers = join_all((0..50).map(|_| ada.lab("ada"))).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap().status == 404));
    assert_eq!(hub.asked(), 1);
}

#[tokio::test]
async fn without_the_hub_known_tokens_are_accepted_and_others_get_503() {
    let hub = hub().await;
    let service = service(&hub).await;
    let ada = service.stranger().with_token("of-ada");
    assert_eq!(ada.lab("ada").await.unwrap().status, 404);
    hub.go_away();
    assert_eq!(ada.lab("ada").await.unwrap().status, 404);
    let root = service.stranger().with_token("of-root").lab("ada").await.unwrap();
    assert_eq!(root.problem().unwrap(), "503 identity_provider_unavailable");
    assert!(!root.header("retry-after").is_empty());
}
