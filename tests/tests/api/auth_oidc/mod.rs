//! The mode `oidc`, alone and beside others.

mod keys;

use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, PREFIX};
use wasmspawner_tests::issuer::Issuer;
use wasmspawner_tests::provider::Provider;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::signing_key::{SigningKey, encode, message, token_with_secret};

use crate::BINARY;

fn auth(issuer: &Issuer) -> Value {
    json!({
        "modes": ["oidc"],
        "oidc": {
            "issuer": issuer.url(),
            "audience": "wasmspawner",
            "uid_claim": "uid",
            "gid_claim": "gid",
            "user_scopes": { "hub": ["admin:jupyterhub"] },
            "group_scopes": { "staff": ["admin:notebook"] },
        },
        "identities": {
            "users": { "grace": { "uid": 7, "gid": 7, "groups": [{ "name": "navy", "id": 70 }] } },
            "default": { "uid": 2000, "gid": 2000 },
        },
    })
}

async fn service(issuer: &Issuer) -> Service {
    Service::start_with(BINARY, |config| config["auth"] = auth(issuer)).await.unwrap()
}

async fn get(service: &Service, token: &str, path: &str) -> Answer {
    service.stranger().with_token(token).get(&format!("{PREFIX}{path}")).await.unwrap()
}

/// The claims of Ada's token, with changes. A claim that is set to null is removed.
fn changed(claims: &Value, changes: &Value) -> Value {
    let mut claims = claims.as_object().unwrap().clone();
    claims.extend(changes.as_object().unwrap().clone());
    claims.retain(|_, value| !value.is_null());
    Value::Object(claims)
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

#[tokio::test]
async fn tokens_signed_with_each_kind_of_key_are_accepted() {
    let keys =
        [SigningKey::rsa("r").unwrap(), SigningKey::p256("p").unwrap(), SigningKey::ed25519("e").unwrap()];
    let issuer = Issuer::start(&[&keys[0], &keys[1], &keys[2]]).await.unwrap();
    let service = service(&issuer).await;
    let claims = issuer.claims("ada");
    for key in &keys {
        for changes in [
            json!({}),
            json!({ "aud": ["account", "wasmspawner"] }),
            json!({ "exp": now() - 5 }),
            json!({ "nbf": null, "iat": null, "sub": null, "typ": null }),
        ] {
            let token = key.token(&changed(&claims, &changes)).unwrap();
            let answer = get(&service, &token, "/labs/ada").await;
            assert_eq!(answer.problem().unwrap(), "404 unknown_lab", "{} {changes}", key.header());
        }
        let header = changed(&key.header(), &json!({ "typ": "at+JWT", "kid": null }));
        let token = key.token_with(&header, &claims).unwrap();
        assert_eq!(get(&service, &token, "/labs/ada").await.status, 404, "{header}");
    }
    assert_eq!(issuer.asked(), 2, "the provider is asked about its keys, and about no token");
}

/// A token for another service, an old one, or a forged one.
#[tokio::test]
async fn a_token_that_is_not_valid_for_this_service_is_refused() {
    let (rsa, ed) = (SigningKey::rsa("r").unwrap(), SigningKey::ed25519("e").unwrap());
    let stranger = SigningKey::ed25519("e").unwrap();
    let issuer = Issuer::start(&[&rsa, &ed]).await.unwrap();
    let service = service(&issuer).await;
    let claims = issuer.claims("ada");
    let with_claims = |changes: Value| ed.token(&changed(&claims, &changes)).unwrap();
    let with_header = |changes: Value| ed.token_with(&changed(&ed.header(), &changes), &claims).unwrap();
    let genuine = ed.token(&claims).unwrap();
    let (signed, signature) = genuine.rsplit_once('.').unwrap();
    let none = message(&json!({ "alg": "none", "typ": "JWT" }), &claims);
    let public = rsa.public();
    let hmac = json!({ "alg": "HS256", "typ": "JWT", "kid": "r" });
    let secret = |secret: &[u8]| token_with_secret(secret, &hmac, &claims);
    for (what, token) in [
        ("another issuer", with_claims(json!({ "iss": "https://sso.example.org/realms/lab" }))),
        ("an issuer with a slash", with_claims(json!({ "iss": format!("{}/", issuer.url()) }))),
        ("several issuers", with_claims(json!({ "iss": [issuer.url()] }))),
        ("no issuer", with_claims(json!({ "iss": null }))),
        ("another audience", with_claims(json!({ "aud": "account" }))),
        ("other audiences", with_claims(json!({ "aud": ["account", "wasmspawner2"] }))),
        ("no audience", with_claims(json!({ "aud": null }))),
        ("an expired token", with_claims(json!({ "exp": now() - 60 }))),
        ("no expiry", with_claims(json!({ "exp": null }))),
        ("an expiry as text", with_claims(json!({ "exp": "tomorrow" }))),
        ("a token for later", with_claims(json!({ "nbf": now() + 60 }))),
        ("a beginning as text", with_claims(json!({ "nbf": "yesterday" }))),
        ("no username", with_claims(json!({ "preferred_username": null }))),
        ("no JupyterHub username", with_claims(json!({ "preferred_username": "ada/gpu" }))),
        ("groups as text", with_claims(json!({ "groups": "staff" }))),
        ("an ID token for another client", with_claims(json!({ "typ": "ID", "aud": "jupyterhub" }))),
        ("an ID token with the audience", with_claims(json!({ "typ": null, "at_hash": "x" }))),
        ("a refresh token", with_claims(json!({ "typ": "Refresh" }))),
        ("a token bound to a key", with_claims(json!({ "cnf": { "jkt": "x" } }))),
        ("no algorithm", format!("{none}.")),
        ("no algorithm and a signature", format!("{none}.{signature}")),
        ("HS256 with the public key", secret(public["n"].as_str().unwrap().as_bytes())),
        ("HS256 with the whole public key", secret(public.to_string().as_bytes())),
        ("HS256 with nothing", secret(b"")),
        ("another kid", with_header(json!({ "kid": "unknown" }))),
        ("a kid of a key of another type", with_header(json!({ "kid": "r" }))),
        (
            "another algorithm of the key's type",
            rsa.token_with(&changed(&rsa.header(), &json!({ "alg": "PS256" })), &claims).unwrap(),
        ),
        ("an algorithm of another type", with_header(json!({ "alg": "RS256" }))),
        ("an unknown extension", with_header(json!({ "crit": ["exp"] }))),
        ("a logout token", with_header(json!({ "typ": "logout+jwt" }))),
        ("another key with the kid", stranger.token(&claims).unwrap()),
        (
            "its own key in the header",
            stranger
                .token_with(&changed(&stranger.header(), &json!({ "jwk": stranger.public() })), &claims)
                .unwrap(),
        ),
        ("no signature", format!("{signed}.")),
        (
            "another payload",
            format!(
                "{}.{signature}",
                message(&ed.header(), &changed(&claims, &json!({ "preferred_username": "root" })))
            ),
        ),
        ("two signatures", format!("{genuine}.{signature}")),
        ("no token", "e30.e30.e30".to_owned()),
        ("an encrypted token", format!("{}.a.b.c.d", encode(r#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#))),
    ] {
        let answer = get(&service, &token, "/labs/ada").await;
        assert_eq!(answer.problem().unwrap(), "401 invalid_token", "{what}: {}", answer.body);
    }
    let huge = with_claims(json!({ "padding": "x".repeat(16 * 1024) }));
    assert_eq!(get(&service, &huge, "/labs/ada").await.problem().unwrap(), "401 not_authenticated");
    assert_eq!(get(&service, &genuine, "/labs/ada").await.status, 404);
}

/// The service explains a refusal only to a client with a token that the provider signed.
#[tokio::test]
async fn a_refusal_says_what_is_wrong_with_a_genuine_token() {
    let (key, stranger) = (SigningKey::ed25519("e").unwrap(), SigningKey::ed25519("e").unwrap());
    let issuer = Issuer::start(&[&key]).await.unwrap();
    let service = service(&issuer).await;
    for (changes, expected) in [
        (json!({ "aud": "account" }), "`aud` does not contain `wasmspawner`"),
        (json!({ "exp": 1_000_000_000 }), "expired at 2001-09-09T01:46:40Z"),
        (json!({ "nbf": now() + 300 }), "not valid yet"),
        (json!({ "preferred_username": null }), "`preferred_username` is missing"),
    ] {
        let claims = changed(&issuer.claims("ada"), &changes);
        let body = get(&service, &key.token(&claims).unwrap(), "/labs/ada").await.body;
        assert!(body.contains(expected), "{body}");
        let forged = get(&service, &stranger.token(&claims).unwrap(), "/labs/ada").await.body;
        assert!(forged.contains("the token is not valid"), "{forged}");
    }
}

#[tokio::test]
async fn scopes_of_an_access_token_come_from_its_claims_and_the_configuration() {
    let key = SigningKey::p256("p").unwrap();
    let issuer = Issuer::start(&[&key]).await.unwrap();
    let service = service(&issuer).await;
    for (user, changes, path, expected) in [
        ("ada", json!({}), "/labs/ada", 404),
        ("ada", json!({}), "/labs/bob", 403),
        ("ada", json!({}), "/labs", 403),
        ("ada", json!({ "groups": ["staff"] }), "/policies", 200),
        ("ada", json!({ "groups": ["staffers"] }), "/policies", 403),
        ("ada", json!({ "scope": "openid admin:notebook" }), "/policies", 200),
        ("hub", json!({}), "/labs", 200),
        ("hub", json!({}), "/policies", 403),
    ] {
        let token = key.token(&changed(&issuer.claims(user), &changes)).unwrap();
        assert_eq!(get(&service, &token, path).await.status, expected, "{user} {changes} {path}");
    }
}

#[tokio::test]
async fn a_lab_has_the_numbers_and_groups_of_its_user_s_token_and_the_token() {
    let key = SigningKey::rsa("r").unwrap();
    let issuer = Issuer::start(&[&key]).await.unwrap();
    let service = service(&issuer).await;
    let cluster = service.cluster().await.unwrap();
    let physics = json!([{ "name": "physics" }]);
    let navy = json!([{ "name": "navy", "id": 70 }]);
    for (user, changes, uid, gid, groups, handed_over) in [
        ("ada", json!({ "uid": 4242, "gid": "100" }), 4242, 100, physics.clone(), true),
        ("bob", json!({}), 2000, 2000, physics, true),
        ("grace", json!({ "groups": null }), 7, 7, navy, true),
        // An administrator's own lab: code that runs there must not administer other labs.
        ("eve", json!({ "groups": ["staff"] }), 2000, 2000, json!([{ "name": "staff" }]), false),
    ] {
        let token = key.token(&changed(&issuer.claims(user), &changes)).unwrap();
        let client = service.stranger().with_token(&token);
        client.spawn_to_end(user).await.unwrap();
        let lab = client.lab(user).await.unwrap().json().unwrap();
        assert_eq!(
            (&lab["uid"], &lab["gid"], &lab["groups"]),
            (&json!(uid), &json!(gid), &groups),
            "{lab:#}"
        );
        let secrets = Api::<Secret>::namespaced(cluster.clone(), &format!("nublado-{user}"));
        let data = secrets.get(&format!("nb-{user}")).await.unwrap().data.unwrap_or_default();
        let of_lab = data.get("token").map(|token| String::from_utf8(token.0.clone()).unwrap());
        assert_eq!(of_lab.is_some_and(|of_lab| of_lab == token), handed_over, "{user}");
        assert!(!service.log().contains(&token), "no token is logged");
    }
}

/// A policy may refuse by group, so a user whose token has no groups must not count as one without groups.
#[tokio::test]
async fn a_user_whose_groups_the_token_does_not_say_is_refused() {
    let key = SigningKey::ed25519("e").unwrap();
    let issuer = Issuer::start(&[&key]).await.unwrap();
    let service = service(&issuer).await;
    let silent = changed(&issuer.claims("ada"), &json!({ "groups": null }));
    let ada = service.stranger().with_token(&key.token(&silent).unwrap());
    let refusal = ada.spawn("ada").await.unwrap();
    assert_eq!(refusal.problem().unwrap(), "403 identity_unknown");
    assert!(refusal.body.contains("auth.oidc.groups_claim"), "{}", refusal.body);
    let none = changed(&issuer.claims("bob"), &json!({ "groups": [] }));
    let bob = service.stranger().with_token(&key.token(&none).unwrap());
    assert_eq!(bob.spawn("bob").await.unwrap().status, 303);
}

/// A refused token may be valid elsewhere, so the service does not pass it on.
#[tokio::test]
async fn the_hub_never_sees_a_token_of_the_provider() {
    let (key, unknown) = (SigningKey::ed25519("e").unwrap(), SigningKey::ed25519("unknown").unwrap());
    let issuer = Issuer::start(&[&key]).await.unwrap();
    let of_ada = json!({ "kind": "user", "name": "ada", "scopes": ["servers!user=ada"], "groups": [] });
    let hub = Provider::start(&[("/hub/api/user", "of-the-hub", of_ada)]).await.unwrap();
    let mut service = Service::prepare(BINARY, |_| {}).unwrap();
    service
        .reconfigure(|config| {
            let tokens = config["auth"]["static"].clone();
            config["auth"] = auth(&issuer);
            config["auth"]["static"] = tokens;
            config["auth"]["modes"] = json!(["static", "oidc", "jupyterhub"]);
            config["auth"]["jupyterhub"] = json!({ "api_url": format!("{}/hub/api", hub.url()) });
        })
        .unwrap();
    service.run().await.unwrap();
    let claims = issuer.claims("ada");
    let expired = changed(&claims, &json!({ "exp": now() - 600 }));
    let for_another = changed(&claims, &json!({ "aud": "bank" }));
    for token in [
        key.token(&claims).unwrap(),
        key.token(&expired).unwrap(),
        key.token(&for_another).unwrap(),
        unknown.token(&claims).unwrap(),
        format!("{}.", message(&json!({ "alg": "none" }), &claims)),
        // An attacker who sees one of these would get a good token by changing a letter.
        format!("{}.", key.token(&claims).unwrap()),
        format!("{}=", key.token(&claims).unwrap()),
        key.token(&changed(&claims, &json!({ "iss": format!("{}/", issuer.url()) }))).unwrap(),
        key.token(&changed(&claims, &json!({ "iss": [issuer.url()] }))).unwrap(),
        key.token(&changed(&claims, &json!({ "exp": "soon" }))).unwrap(),
    ] {
        let expected = if token == key.token(&claims).unwrap() { 404 } else { 401 };
        assert_eq!(get(&service, &token, "/labs/ada").await.status, expected);
    }
    assert_eq!(service.admin().unwrap().lab("ada").await.unwrap().status, 404);
    assert_eq!(hub.asked(), 0);
    assert_eq!(get(&service, "of-the-hub", "/labs/ada").await.status, 404);
    assert_eq!(hub.asked(), 1);
}

#[tokio::test]
async fn a_bearer_token_needs_no_header_against_cross_site_requests() {
    let key = SigningKey::ed25519("e").unwrap();
    let issuer = Issuer::start(&[&key]).await.unwrap();
    let service = service(&issuer).await;
    let ada = service.stranger().with_token(&key.token(&issuer.claims("ada")).unwrap());
    let answer = ada.send(ada.request(Method::DELETE, &format!("{PREFIX}/labs/ada"))).await.unwrap();
    assert_eq!(answer.problem().unwrap(), "404 unknown_lab");
}
