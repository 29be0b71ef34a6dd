//! The mode `headers`, as with Gafaelfawr.

use http::Method;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, PREFIX};
use wasmspawner_tests::guests;
use wasmspawner_tests::provider::Provider;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;
use crate::kernels::{body, kernels, launcher, pods, start};

async fn gafaelfawr() -> Provider {
    let rra = json!({
        "username": "rra", "name": "Russ Allbery", "email": "rra@example.org", "uid": 4_266_950, "gid": 4_266_950,
        "groups": [{ "name": "lsst-data-management", "id": 170_034 }, { "name": "rra", "id": 4_266_950 }, { "name": "web" }],
    });
    let token = |username: &str, scopes: Value| json!({ "token": "key", "username": username, "token_type": "notebook", "scopes": scopes });
    Provider::start(&[
        ("/auth/api/v1/user-info", "gt-rra", rra),
        ("/auth/api/v1/token-info", "gt-rra", token("rra", json!(["exec:notebook", "read:all"]))),
        ("/auth/api/v1/user-info", "gt-admin", json!({ "username": "admin", "uid": 7, "groups": [] })),
        ("/auth/api/v1/token-info", "gt-admin", token("admin", json!(["admin:notebook"]))),
        ("/auth/api/v1/user-info", "gt-bot", json!({ "username": "bot-jupyterhub" })),
        ("/auth/api/v1/token-info", "gt-bot", token("bot-jupyterhub", json!([]))),
        ("/auth/api/v1/user-info", "gt-eve", json!({ "username": "eve", "uid": 9 })),
        ("/auth/api/v1/token-info", "gt-eve", token("eve", json!([]))),
        (
            "/auth/api/v1/user-info",
            "gt-guest",
            with_quota("guest", &json!({ "cpu": 9.0, "memory": 27.0, "spawn": false })),
        ),
        ("/auth/api/v1/token-info", "gt-guest", token("guest", json!(["admin:notebook"]))),
        (
            "/auth/api/v1/user-info",
            "gt-ada",
            with_quota("ada", &json!({ "cpu": 9.0, "memory": 27.0, "spawn": true })),
        ),
        ("/auth/api/v1/token-info", "gt-ada", token("ada", json!([]))),
        ("/auth/api/v1/user-info", "gt-bob", with_quota("bob", &json!({ "cpu": "lots", "memory": 27.0 }))),
        ("/auth/api/v1/token-info", "gt-bob", token("bob", json!([]))),
    ])
    .await
    .unwrap()
}

/// The answer about a user with a quota for notebooks.
fn with_quota(username: &str, notebook: &Value) -> Value {
    let quota = json!({ "api": { "datalinker": 500 }, "notebook": notebook });
    json!({ "username": username, "uid": 11, "groups": [], "quota": quota })
}

async fn service(gafaelfawr: &Provider, trusted: &str, also_set: Value) -> Service {
    service_with_proof(gafaelfawr, trusted, also_set, json!("delegated-token")).await
}

async fn service_with_proof(gafaelfawr: &Provider, trusted: &str, also_set: Value, proof: Value) -> Service {
    let auth = json!({
        "modes": ["headers"],
        "headers": {
            "url": gafaelfawr.url(),
            "trusted_peers": [trusted],
            "proof": proof,
            "user_scopes": { "bot-jupyterhub": ["admin:jupyterhub"] },
            "ingress_also_sets": also_set,
        },
    });
    Service::start_with(BINARY, |config| config["auth"] = auth).await.unwrap()
}

async fn send(service: &Service, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let body = if method == Method::POST { json!({}) } else { Value::Null };
    request(service, method, path, headers, &body).await
}

async fn request(
    service: &Service,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let client = service.stranger();
    let request = client.request(method, &format!("{PREFIX}{path}"));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let request = request.header("X-Requested-With", "the tests");
    client.send(if body.is_null() { request } else { request.json(body) }).await.unwrap()
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
    let bot = &[("X-Auth-Request-User", "bot-jupyterhub"), ("X-Auth-Request-Token", "gt-bot")];
    let admin = &[("X-Auth-Request-User", "admin"), ("X-Auth-Request-Token", "gt-admin")];
    let forged = &[
        ("X-Auth-Request-User", "eve"),
        ("X-Auth-Request-Token", "gt-eve"),
        ("X-Auth-Request-Token-Scopes", "admin:notebook"),
    ];
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
    let also_set = json!(["scopes", "groups"]);
    let gafaelfawr = gafaelfawr().await;
    let service = service_with_proof(&gafaelfawr, "127.0.0.0/8", also_set, json!("bare-user-header")).await;
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

/// A client that can connect from the ingress's address, such as another container on its node, must not be able to act
/// as any user.
#[tokio::test]
async fn a_user_header_without_a_token_is_refused_unless_it_is_configured_so() {
    let gafaelfawr = gafaelfawr().await;
    let bare = &[("X-Auth-Request-User", "rra")];
    let strict = service(&gafaelfawr, "127.0.0.0/8", json!([])).await;
    let answer = send(&strict, Method::GET, "/labs/rra", bare).await;
    assert_eq!(answer.problem().unwrap(), "401 invalid_header");
    assert!(answer.body.contains("auth.headers.proof"), "{}", answer.body);
    let open = service_with_proof(&gafaelfawr, "127.0.0.0/8", json!([]), json!("bare-user-header")).await;
    assert_eq!(send(&open, Method::GET, "/labs/rra", bare).await.status, 404);
}

#[tokio::test]
async fn a_shared_secret_shows_that_a_request_came_through_the_ingress() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    let proof = json!({ "shared-secret": { "file": file } });
    let service = service_with_proof(&gafaelfawr().await, "127.0.0.0/8", json!([]), proof).await;
    let user = ("X-Auth-Request-User", "rra");
    for (secret, expected) in [(None, 401), (Some("guess"), 401), (Some("0123456789abcdef"), 404)] {
        let headers: Vec<_> =
            [user].into_iter().chain(secret.map(|secret| ("X-Ingress-Secret", secret))).collect();
        let answer = send(&service, Method::GET, "/labs/rra", &headers).await;
        assert_eq!(answer.status, expected, "{secret:?}");
    }
}

/// A page of another site can make a browser submit a form, with the cookies by which the ingress identifies the user.
#[tokio::test]
async fn a_request_that_another_site_s_form_could_send_changes_nothing() {
    let service = service(&gafaelfawr().await, "127.0.0.0/8", json!([])).await;
    let client = service.stranger();
    for (method, path) in [
        (Method::POST, "/labs/rra/spawn"),
        (Method::DELETE, "/labs/rra"),
        (Method::DELETE, "/labs/rra/volumes"),
        (Method::POST, "/policies/reload"),
        (Method::POST, "/config/reload"),
    ] {
        let request = client.request(method.clone(), &format!("{PREFIX}{path}"));
        let request = RRA.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = client.send(request).await.unwrap();
        assert_eq!(answer.problem().unwrap(), "403 cross_site_request", "{method} {path}");
    }
}

#[tokio::test]
async fn a_user_whose_groups_gafaelfawr_does_not_say_is_refused() {
    let service = service(&gafaelfawr().await, "127.0.0.0/8", json!([])).await;
    let eve = &[("X-Auth-Request-User", "eve"), ("X-Auth-Request-Token", "gt-eve")];
    let answer = send(&service, Method::POST, "/labs/eve/spawn", eve).await;
    assert_eq!(answer.problem().unwrap(), "403 identity_unknown");
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

/// Labs reach the service through the ingress, with their users' tokens. The ingress lets the programs in the pods of
/// kernels through unseen, with tokens that the service has made, so these are worth nothing but that, whatever headers
/// they come with.
#[tokio::test]
async fn a_kernel_is_its_user_s_and_its_launcher_needs_no_ingress() {
    let service = service(&gafaelfawr().await, "127.0.0.0/8", json!([])).await;
    assert_eq!(send(&service, Method::POST, "/labs/rra/spawn", RRA).await.status, 303);
    let events = send(&service, Method::GET, "/labs/rra/events", RRA).await;
    assert!(events.body.contains("event: complete"), "{}", events.body);
    let eve = &[("X-Auth-Request-User", "eve"), ("X-Auth-Request-Token", "gt-eve")];
    let stolen = &[("X-Auth-Request-User", "rra"), ("X-Auth-Request-Token", "gt-eve")];
    for (headers, expected) in [(eve.as_slice(), 403), (stolen, 401), (&[], 401), (RRA, 201), (RRA, 409)] {
        let answer = start_kernel(&service, "k1", headers).await;
        assert_eq!(answer.status, expected, "{headers:?}: {answer:?}");
    }
    let cluster = service.cluster().await.unwrap();
    let pod = until_some(async || kernels(pods(&cluster, "nublado-rra").await).pop()).await;
    assert_eq!(start_kernel(&service, "k2", RRA).await.status, 201);
    let bearer = format!("Bearer {}", launcher(&service, "nublado-rra", &pod).await.token().unwrap());
    let alone = [("Authorization", bearer.as_str())];
    let forged = [alone[0], ("X-Auth-Request-User", "rra"), ("X-Auth-Request-Token", "gt-unknown")];
    let elsewhere =
        ["/labs/rra", "/labs/rra/kernels", "/labs/rra/kernels/k1", "/labs/rra/kernels/k2/launcher", "/labs"];
    for headers in [alone.as_slice(), &forged] {
        let reported = json!({ "number": 1, "state": "running" });
        let answer =
            request(&service, Method::PUT, "/labs/rra/kernels/k1/launcher", headers, &reported).await;
        assert!(answer.status < 300, "{headers:?}: {answer:?}");
        for path in elsewhere {
            let answer = send(&service, Method::GET, path, headers).await;
            assert!([401, 403].contains(&answer.status), "{headers:?} {path}: {answer:?}");
        }
        assert_eq!(send(&service, Method::DELETE, "/labs/rra", headers).await.status, 401);
    }
    // The user is not the launcher either.
    let answer = send(&service, Method::GET, "/labs/rra/kernels/k1/launcher", RRA).await;
    assert_eq!(answer.problem().unwrap(), "401 not_authenticated");
}

/// Labs that tokens of the Hub have started have no token that the ingress knows, so they come directly. There nobody is
/// believed who comes as if through the ingress, and the Hub never sees a token of Gafaelfawr.
#[tokio::test]
async fn beside_an_ingress_labs_with_tokens_of_the_hub_come_directly() {
    let of_server = json!({
        "kind": "user", "name": "ada", "groups": [], "scopes": ["access:servers!server=ada/"], "auth_state": null,
    });
    let hub = Provider::start(&[("/hub/api/user", "of-the-server", of_server)]).await.unwrap();
    let gafaelfawr = gafaelfawr().await;
    let service = Service::start_with(BINARY, |config| {
        config["auth"] = json!({
            "modes": ["headers", "jupyterhub"],
            "headers": { "url": gafaelfawr.url(), "trusted_peers": ["10.0.0.0/8"], "implied_scopes": [] },
            "jupyterhub": { "api_url": format!("{}/hub/api", hub.url()) },
            "identities": { "default": { "uid": 2000, "gid": 2000 } },
        });
    });
    let service = service.await.unwrap();
    let ada = service.stranger().with_token("of-the-server");
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(start(&ada, "ada", "k1").await.status, 201);
    let asked = hub.asked();
    let of_gafaelfawr = [("Authorization", "Bearer gt-key.secret")];
    for headers in [RRA, &of_gafaelfawr, &[RRA[0], RRA[1], of_gafaelfawr[0]]] {
        let answer = send(&service, Method::GET, "/labs/rra", headers).await;
        assert_eq!(answer.status, 401, "{headers:?}: {answer:?}");
    }
    assert_eq!((hub.asked(), gafaelfawr.asked()), (asked, 0));
}

async fn start_kernel(service: &Service, kernel: &str, headers: &[(&str, &str)]) -> Answer {
    request(service, Method::POST, &format!("/labs/rra/kernels/{kernel}"), headers, &body()).await
}

/// Gafaelfawr's quota applies in addition to those of the policies. Here its memory limit is the stricter one.
#[tokio::test]
async fn gafaelfawr_s_quota_holds_beside_the_policies_quotas() {
    let gafaelfawr = gafaelfawr().await;
    let service = Service::start_with(BINARY, |config| {
        config["auth"] = json!({
            "modes": ["headers"],
            "headers": { "url": gafaelfawr.url(), "trusted_peers": ["127.0.0.0/8"] },
        });
        config["lab"] = json!({ "image": "lab:1" });
        config["policies"] = json!([{
            "name": "default",
            "path": guests::component("policy-default"),
            "config": { "quota": { "default": { "cpu": 16, "memory": "4Gi" } } },
        }]);
    });
    let service = service.await.unwrap();
    let ada = &[("X-Auth-Request-User", "ada"), ("X-Auth-Request-Token", "gt-ada")];
    assert_eq!(send(&service, Method::POST, "/labs/ada/spawn", ada).await.status, 303);
    let events = send(&service, Method::GET, "/labs/ada/events", ada).await;
    assert!(events.body.contains("event: complete"), "{}", events.body);
    let quotas = Api::<ResourceQuota>::namespaced(service.cluster().await.unwrap(), "nublado-ada");
    let hard = quotas.get("nb-ada").await.unwrap().spec.unwrap().hard.unwrap();
    let limits: Vec<_> = hard.iter().map(|(name, limit)| (name.as_str(), limit.0.as_str())).collect();
    assert_eq!(limits, [("limits.cpu", "9"), ("limits.memory", "4Gi")]);
}

/// The refusal does not depend on the policies or the user's scopes.
#[tokio::test]
async fn a_user_whom_gafaelfawr_forbids_to_spawn_starts_no_lab() {
    let service = service(&gafaelfawr().await, "127.0.0.0/8", json!([])).await;
    let guest = &[("X-Auth-Request-User", "guest"), ("X-Auth-Request-Token", "gt-guest")];
    let answer = send(&service, Method::POST, "/labs/guest/spawn", guest).await;
    assert_eq!(answer.problem().unwrap(), "403 permission_denied");
    assert!(answer.body.contains("Your account may not start labs"), "{}", answer.body);
    assert_eq!(send(&service, Method::GET, "/labs/guest", guest).await.status, 404);
}

/// A quota that cannot be read must not count as no quota.
#[tokio::test]
async fn a_user_whose_quota_is_not_understood_starts_no_lab() {
    let service = service(&gafaelfawr().await, "127.0.0.0/8", json!([])).await;
    let bob = &[("X-Auth-Request-User", "bob"), ("X-Auth-Request-Token", "gt-bob")];
    let answer = send(&service, Method::POST, "/labs/bob/spawn", bob).await;
    assert_eq!(answer.problem().unwrap(), "503 identity_provider_unavailable");
}
