//! The mode `jupyterhub`, alone and beside static tokens.

use std::time::Instant;

use futures::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};
use wasmspawner_core::users::access::Scope;
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::provider::Provider;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_running;

use crate::BINARY;

fn user(name: &str, scopes: &[&str], groups: &[&str]) -> Value {
    json!({ "kind": "user", "name": name, "admin": false, "groups": groups, "scopes": scopes, "auth_state": null })
}

fn service_account(name: &str) -> Value {
    json!({ "kind": "service", "name": name, "admin": false, "scopes": [] })
}

/// A fake of the Hub. The end-to-end tests get the same tokens from a real one.
async fn hub() -> Provider {
    let of_server = |name: &str, server: &str| {
        let scopes = [format!("users:activity!user={name}"), format!("access:servers!server={server}")];
        user(name, &scopes.each_ref().map(String::as_str), &[])
    };
    Provider::start(&[
        (
            "/hub/api/user",
            "of-ada",
            user("ada", &["servers!user=ada", "users!user=ada"], &["physics"]),
        ),
        ("/hub/api/user", "of-root", user("root", &["admin:servers", "servers"], &[])),
        ("/hub/api/user", "of-ada-s-server", of_server("ada", "ada/")),
        ("/hub/api/user", "of-ada-s-gpu", of_server("ada", "ada/gpu")),
        // Ada shares her server with Bob: his token has the same scope for it.
        ("/hub/api/user", "of-bob", of_server("bob", "ada/")),
        ("/hub/api/user", "of-the-hub", service_account("spawner")),
        // A service with the name of a user.
        ("/hub/api/user", "of-the-service-ada", service_account("ada")),
        (
            "/hub/api/user",
            "without-groups",
            json!({ "kind": "user", "name": "eve", "scopes": ["access:servers!server=eve/"] }),
        ),
        ("/hub/api/users/grace", "of-root", user("grace", &[], &["navy"])),
        ("/hub/api/users/admin", "of-the-service", user("admin", &[], &[])),
        ("/hub/api/users/ada", "of-the-service", user("ada", &[], &["physics"])),
        ("/hub/api/users/eve", "of-the-service", json!({ "kind": "user", "name": "eve" })),
        (
            "/hub/api/users/mary",
            "of-the-service",
            json!({ "kind": "user", "name": "mary", "groups": ["x"], "auth_state": { "uid": 7, "gid": 8, "more": [1] } }),
        ),
    ])
    .await
    .unwrap()
}

async fn service(hub: &Provider) -> Service {
    let config = |config: &mut Value| {
        config["auth"] = auth(hub);
        config["limits"] = json!({ "per_user": { "requests_at_once": 500 } });
    };
    Service::start_with(BINARY, config).await.unwrap()
}

fn auth(hub: &Provider) -> Value {
    json!({
        "modes": ["jupyterhub"],
        "jupyterhub": {
            "api_url": format!("{}/hub/api", hub.url()),
            "services": { "spawner": ["admin:jupyterhub"] },
        },
        "identities": { "default": { "uid": 2000, "gid": 2000 } },
    })
}

/// A service with the configuration of `make run`: static tokens first, then the Hub's, and a token of its own at the
/// Hub.
async fn service_with_static_tokens(hub: &Provider) -> Service {
    let mut service = Service::prepare(BINARY, |_| {}).unwrap();
    let token_file = service.folder().join("hub.token");
    std::fs::write(&token_file, "of-the-service").unwrap();
    let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&token_file, owner_only).unwrap();
    service
        .reconfigure(|config| {
            let auth = auth(hub);
            config["auth"]["modes"] = json!(["static", "jupyterhub"]);
            config["auth"]["jupyterhub"] = auth["jupyterhub"].clone();
            config["auth"]["identities"] = auth["identities"].clone();
            config["hub"] = json!({ "token_file": token_file });
        })
        .unwrap();
    service.run().await.unwrap();
    service
}

async fn status(client: &Client, method: Method, path: &str) -> u16 {
    answer(client, method, path).await.status
}

async fn answer(client: &Client, method: Method, path: &str) -> Answer {
    let request = client.request(method.clone(), &format!("{PREFIX}{path}"));
    let request = if method == Method::POST { request.json(&json!({})) } else { request };
    client.send(request).await.unwrap()
}

#[tokio::test]
async fn scopes_of_a_token_come_from_the_hub() {
    let hub = hub().await;
    let service = service(&hub).await;
    for (token, path, expected) in [
        ("of-ada", "/labs/ada", 404),
        ("of-ada", "/labs/ada/logs", 404),
        ("of-ada", "/labs/bob/logs", 403),
        // Neither the Hub nor a lab needs to read logs.
        ("of-the-hub", "/labs/ada/logs", 403),
        ("of-ada-s-server", "/labs/ada/logs", 403),
        ("of-ada-s-gpu", "/labs/ada/servers/gpu/logs", 403),
        ("of-root", "/labs/ada/logs", 404),
        ("of-ada", "/labs/bob", 403),
        ("of-ada", "/labs", 403),
        ("of-the-hub", "/labs", 200),
        ("of-the-hub", "/labs/ada", 404),
        ("of-the-service-ada", "/labs/ada", 403),
        ("of-root", "/labs", 200),
        ("of-root", "/policies", 200),
        ("of-nobody", "/labs/ada", 401),
    ] {
        let client = service.stranger().with_token(token);
        assert_eq!(status(&client, Method::GET, path).await, expected, "{token} {path}");
    }
}

#[tokio::test]
async fn the_token_of_a_server_starts_that_server_and_nothing_else() {
    let hub = hub().await;
    let service = service(&hub).await;
    let spawn = |token: &'static str, lab: &'static str| {
        let client = service.stranger().with_token(token);
        async move { status(&client, Method::POST, &format!("/labs/{lab}/spawn")).await }
    };
    for (token, lab) in [
        ("of-ada-s-server", "ada/servers/gpu"),
        ("of-ada-s-server", "bob"),
        ("of-ada-s-gpu", "ada"),
        ("of-bob", "ada"),
        ("of-bob", "bob"),
        ("of-the-hub", "ada"),
        ("of-the-service-ada", "ada"),
    ] {
        assert_eq!(spawn(token, lab).await, 403, "{token} {lab}");
    }
    assert_eq!(spawn("of-ada-s-server", "ada").await, 303);
    assert_eq!(spawn("of-ada-s-gpu", "ada/servers/gpu").await, 303);
    let gpu = service.stranger().with_token("of-ada-s-gpu");
    assert_eq!(status(&gpu, Method::GET, "/labs/ada").await, 403);
    assert_eq!(status(&gpu, Method::DELETE, "/labs/ada/servers/gpu").await, 202);
    assert_eq!(status(&gpu, Method::GET, "/spawn-form/ada/servers/gpu").await, 200);
}

/// All labs depend on the Hub's credential, so nobody may run code as another user with it.
#[tokio::test]
async fn the_hub_s_credential_reads_and_stops_but_never_starts() {
    let hub = hub().await;
    let service = service_with_static_tokens(&hub).await;
    let [of_file, at_hub] = [service.hub().unwrap(), service.stranger().with_token("of-the-hub")];
    let ada = service.stranger().with_token("of-ada-s-server");
    for of_the_hub in [&of_file, &at_hub] {
        for user in ["ada", "hub", "spawner"] {
            let path = format!("/labs/{user}/spawn");
            let refusal = answer(of_the_hub, Method::POST, &path).await.problem().unwrap();
            assert_eq!(refusal, "403 permission_denied", "{user}");
        }
        assert_eq!(status(&ada, Method::POST, "/labs/ada/spawn").await, 303);
        of_the_hub.events("ada").await.unwrap().to_end().await.unwrap();
        assert_eq!(status(of_the_hub, Method::GET, "/spawn-form/ada").await, 200);
        assert_eq!(status(of_the_hub, Method::GET, "/labs").await, 200);
        of_the_hub.stop_to_end("ada").await.unwrap();
    }
}

#[tokio::test]
async fn a_lab_gets_the_token_of_its_own_user_and_never_an_administrator_s() {
    let hub = hub().await;
    let service = service_with_static_tokens(&hub).await;
    let cluster = service.cluster().await.unwrap();
    let both = [Scope::ExecNotebook, Scope::AdminNotebook];
    for (client, user, expected) in [
        (service.stranger().with_token("of-ada-s-server"), "ada", Some("of-ada-s-server")),
        (service.admin().unwrap(), "ada", None),
        // An administrator's own lab: code that runs there must not administer other labs.
        (service.client("admin", &both).unwrap(), "admin", None),
    ] {
        client.spawn_to_end(user).await.unwrap();
        let secrets = Api::<Secret>::namespaced(cluster.clone(), &format!("nublado-{user}"));
        let data = secrets.get(&format!("nb-{user}")).await.unwrap().data.unwrap_or_default();
        let token = data.get("token").map(|token| String::from_utf8(token.0.clone()).unwrap());
        assert_eq!(token.as_deref().filter(|token| !token.is_empty()), expected, "{user}");
        client.stop_to_end(user).await.unwrap();
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
async fn the_service_s_own_token_reads_groups_and_uids_at_the_hub() {
    let hub = hub().await;
    let service = service_with_static_tokens(&hub).await;
    let admin = service.admin().unwrap();
    for (client, user, uid, group) in
        [(service.stranger().with_token("of-ada-s-server"), "ada", 2000, "physics"), (admin, "mary", 7, "x")]
    {
        client.spawn_to_end(user).await.unwrap();
        let lab = client.lab(user).await.unwrap().json().unwrap();
        assert_eq!((&lab["uid"], &lab["groups"]), (&json!(uid), &json!([{ "name": group }])), "{lab:#}");
    }
}

/// A policy may refuse by group, so a user whose groups are unknown must not count as one without groups.
#[tokio::test]
async fn a_user_whose_groups_are_not_known_is_refused() {
    let hub = hub().await;
    let alone = service(&hub).await;
    let both = service_with_static_tokens(&hub).await;
    for (client, user) in [
        (alone.stranger().with_token("without-groups"), "eve"),
        (both.stranger().with_token("without-groups"), "eve"),
        (both.user("eve").unwrap(), "eve"),
        (both.admin().unwrap(), "unknown-at-the-hub"),
    ] {
        let refusal = answer(&client, Method::POST, &format!("/labs/{user}/spawn")).await;
        assert_eq!(refusal.problem().unwrap(), "403 identity_unknown", "{user}");
        assert!(refusal.body.contains("read:users:groups"), "{}", refusal.body);
    }
}

/// The Hub's answer about the token contains the groups. Only data that the authenticator stored needs a second
/// request.
#[tokio::test]
async fn a_spawn_asks_the_hub_once_unless_the_service_may_read_more() {
    for (scopes, questions) in [(&["read:users:groups"][..], 1), (&["admin:auth_state"], 2)] {
        let token = |name: &str| user(name, &[&format!("access:servers!server={name}/")], &["physics"]);
        let owner = json!({ "kind": "service", "name": "wasmspawner", "scopes": scopes });
        let stored = json!({ "kind": "user", "name": "mary", "groups": [], "auth_state": { "uid": 7 } });
        let hub = Provider::start(&[
            ("/hub/api/user", "of-ada", token("ada")),
            ("/hub/api/user", "of-mary", token("mary")),
            ("/hub/api/user", "of-the-service", owner),
            ("/hub/api/users/ada", "of-the-service", user("ada", &[], &["physics"])),
            ("/hub/api/users/mary", "of-the-service", stored),
        ])
        .await
        .unwrap();
        let service = service_with_static_tokens(&hub).await;
        let spawn = async |name: &str| {
            let client = service.stranger().with_token(&format!("of-{name}"));
            let asked = hub.asked();
            let path = format!("/labs/{name}/spawn");
            assert_eq!(status(&client, Method::POST, &path).await, 303, "{name}");
            hub.asked() - asked
        };
        assert_eq!(spawn("ada").await, questions + 1, "the service asks about its own token first");
        assert_eq!(spawn("mary").await, questions, "{scopes:?}");
        let lab = until_running(&service.admin().unwrap(), "mary").await;
        let expected = if questions == 1 { json!(2000) } else { json!(7) };
        assert_eq!(lab["uid"], expected, "{lab:#}");
    }
}

#[tokio::test]
async fn the_hub_never_sees_a_static_token() {
    let hub = hub().await;
    let service = service_with_static_tokens(&hub).await;
    let asked = hub.asked();
    let admin = service.admin().unwrap();
    assert_eq!(status(&admin, Method::GET, "/labs").await, 200);
    assert_eq!(hub.asked(), asked);
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
async fn a_refused_token_is_not_asked_about_again_at_once() {
    let hub = hub().await;
    let service = service(&hub).await;
    let nobody = service.stranger().with_token("of-nobody");
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(nobody.lab("ada").await.unwrap().status, 401);
    }
    // The answer is requested again after five seconds.
    let most = 1 + begun.elapsed().as_secs() / 5;
    assert!((1..=most).contains(&(hub.asked() as u64)), "{} times and not {most}", hub.asked());
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
