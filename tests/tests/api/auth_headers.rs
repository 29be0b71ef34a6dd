//! `auth.mode: headers`, as with Gafaelfawr.

use http::Method;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, PREFIX};
use wasmspawner_tests::provider::Provider;
use wasmspawner_tests::service::Service;

use crate::BINARY;

async fn gafaelfawr() -> Provider {
    let rra = json!({
        "username": "rra", "name": "Russ Allbery", "email": "rra@example.org", "uid": 4_266_950, "gid": 4_266_950,
        "groups": [{ "name": "lsst-data-management", "id": 170_034 }, { "name": "rra", "id": 4_266_950 }, { "name": "web" }],
    });
    let token = |username: &str, scopes: Value| json!({ "token": "key", "username": username, "token_type": "notebook", "scopes": scopes });
    Provider::start(&[
        ("/auth/api/v1/user-info", "gt-rra", rra),
        ("/auth/api/v1/token-info", "gt-rra", token("rra", json!(["exec:notebook", "read:all"]))),
        ("/auth/api/v1/user-info", "gt-admin", json!({ "username": "admin", "uid": 7 })),
        ("/auth/api/v1/token-info", "gt-admin", token("admin", json!(["admin:notebook"]))),
    ])
    .await
    .unwrap()
}

async fn service(gafaelfawr: &Provider, trusted: &str, also_set: Value) -> Service {
    let auth = json!({
        "mode": "headers",
        "headers": {
            "url": gafaelfawr.url(),
            "trusted_peers": [trusted],
            "user_scopes": { "bot-jupyterhub": ["admin:jupyterhub"] },
            "ingress_also_sets": also_set,
        },
    });
    Service::start_with(BINARY, |config| config["auth"] = auth).await.unwrap()
}

async fn send(service: &Service, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let client = service.stranger();
    let request = client.request(method.clone(), &format!("{PREFIX}{path}"));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let body = if method == Method::POST { request.json(&json!({})) } else { request };
    client.send(body).await.unwrap()
}

const RRA: &[(&str, &str)] = &[("X-Auth-Request-User", "rra"), ("X-Auth-Request-Token", "gt-rra")];

#[tokio::test]
async fn a_lab_has_the_uid_gid_and_groups_of_its_user() {
    let gafaelfawr = gafaelfawr().await;
    let service = service(&gafaelfawr, "127.0.0.0/8", json!([])).await;
    assert_eq!(send(&service, Method::POST, "/labs/rra/spawn", RRA).await.status, 303);
    let events = send(&service, Method::GET, "/labs/rra/events", RRA).await;
    assert!(events.body.contains("event: complete"), "{}", events.body);
    let lab = send(&service, Method::GET, "/labs/rra", RRA).await.json().unwrap();
    assert_eq!((&lab["uid"], &lab["gid"]), (&json!(4_266_950), &json!(4_266_950)));
    let groups = json!([{ "name": "lsst-data-management", "id": 170_034 }, { "name": "rra", "id": 4_266_950 }, { "name": "web" }]);
    assert_eq!(lab["groups"], groups);
    assert_eq!(gafaelfawr.asked(), 2, "user and token are asked for once, and remembered");
}

#[tokio::test]
async fn scopes_come_from_the_token_the_configuration_and_the_ingress() {
    let service = service(&gafaelfawr().await, "127.0.0.0/8", json!([])).await;
    let bot = &[("X-Auth-Request-User", "bot-jupyterhub")];
    let admin = &[("X-Auth-Request-User", "admin"), ("X-Auth-Request-Token", "gt-admin")];
    let forged = &[("X-Auth-Request-User", "eve"), ("X-Auth-Request-Token-Scopes", "admin:notebook")];
    for (headers, path, expected) in [
        (RRA, "/labs/rra", 404),
        (RRA, "/labs/eve", 403),
        (RRA, "/labs", 403),
        (bot.as_slice(), "/labs", 200),
        (bot, "/labs/rra", 404),
        (admin, "/labs/rra", 404),
        (admin, "/policies", 200),
        (forged, "/labs", 403),
        (&[], "/labs", 401),
    ] {
        let answer = send(&service, Method::GET, path, headers).await;
        assert_eq!(answer.status, expected, "{headers:?} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn headers_that_the_ingress_always_sets_are_trusted() {
    let service = service(&gafaelfawr().await, "127.0.0.0/8", json!(["scopes", "groups"])).await;
    let old = &[("X-Auth-Request-User", "eve"), ("X-Auth-Request-Token-Scopes", "read:all admin:notebook")];
    assert_eq!(send(&service, Method::GET, "/labs", old).await.status, 200);
}

#[tokio::test]
async fn requests_that_do_not_come_from_the_ingress_are_refused() {
    let elsewhere = service(&gafaelfawr().await, "10.0.0.0/8", json!([])).await;
    let answer = send(&elsewhere, Method::GET, "/labs/rra", RRA).await;
    assert_eq!(answer.problem().unwrap(), "401 untrusted_peer");

    let service = service(&gafaelfawr().await, "127.0.0.0/8", json!([])).await;
    let twice = &[("X-Auth-Request-User", "rra"), ("X-Auth-Request-User", "admin")];
    let stolen = &[("X-Auth-Request-User", "eve"), ("X-Auth-Request-Token", "gt-rra")];
    let odd = &[("X-Auth-Request-User", "a/b")];
    for headers in [twice.as_slice(), stolen, odd] {
        let answer = send(&service, Method::GET, "/labs/rra", headers).await;
        assert_eq!(answer.problem().unwrap(), "401 invalid_header", "{headers:?}");
    }
    let unknown = &[("X-Auth-Request-User", "rra"), ("X-Auth-Request-Token", "gt-expired")];
    assert_eq!(
        send(&service, Method::GET, "/labs/rra", unknown).await.problem().unwrap(),
        "401 invalid_token"
    );
}

#[tokio::test]
async fn without_gafaelfawr_new_callers_get_503() {
    let gafaelfawr = gafaelfawr().await;
    let service = service(&gafaelfawr, "127.0.0.0/8", json!([])).await;
    assert_eq!(send(&service, Method::GET, "/labs/rra", RRA).await.status, 404);
    gafaelfawr.go_away();
    assert_eq!(send(&service, Method::GET, "/labs/rra", RRA).await.status, 404);
    let admin = &[("X-Auth-Request-User", "admin"), ("X-Auth-Request-Token", "gt-admin")];
    let answer = send(&service, Method::GET, "/labs/rra", admin).await;
    assert_eq!(answer.problem().unwrap(), "503 identity_provider_unavailable");
}
