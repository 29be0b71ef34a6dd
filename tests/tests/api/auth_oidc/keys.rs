//! The provider's keys: rotation, look-ups, faults.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::time::{Instant, interval, timeout};
use wasmspawner_tests::issuer::{Issuer, IssuerFault};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::signing_key::SigningKey;

use super::{auth, changed, get, service};
use crate::BINARY;

/// The service's pause between two look-ups of keys.
const PAUSE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_new_key_is_used_without_a_restart_and_an_old_one_no_longer() {
    let (old, new) = (SigningKey::p256("1").unwrap(), SigningKey::p256("2").unwrap());
    let issuer = Issuer::start(&[&old]).await.unwrap();
    let service = service(&issuer).await;
    let claims = issuer.claims("ada");
    let (by_old, by_new) = (old.token(&claims).unwrap(), new.token(&claims).unwrap());
    assert_eq!(get(&service, &by_old, "/labs/ada").await.status, 404);
    issuer.publishes(&[&new]);
    wait_for(&service, &by_new, "404 unknown_lab").await;
    assert_eq!(get(&service, &by_old, "/labs/ada").await.problem().unwrap(), "401 invalid_token");
}

/// Sends the token until it gets this answer.
async fn wait_for(service: &Service, token: &str, expected: &str) {
    let mut again = interval(Duration::from_millis(50));
    let answered = async {
        while get(service, token, "/labs/ada").await.problem().unwrap() != expected {
            again.tick().await;
        }
    };
    timeout(PATIENCE, answered).await.unwrap();
}

#[tokio::test]
async fn random_key_ids_do_not_make_the_service_ask_the_provider_all_the_time() {
    let key = SigningKey::ed25519("e").unwrap();
    let issuer = Issuer::start(&[&key]).await.unwrap();
    let service = service(&issuer).await;
    let claims = issuer.claims("ada");
    let began = Instant::now();
    let random = (0..200).map(|n| {
        let header = changed(&key.header(), &json!({ "kid": n.to_string() }));
        let token = key.token_with(&header, &claims).unwrap();
        let service = &service;
        async move { get(service, &token, "/labs/ada").await.status }
    });
    assert!(join_all(random).await.iter().all(|status| *status == 401));
    let pauses = usize::try_from(began.elapsed().as_secs() / PAUSE.as_secs()).unwrap();
    let asked = issuer.key_sets();
    assert!((1..=1 + pauses).contains(&asked), "asked {asked} times in {:?}", began.elapsed());
    // Tokens of others cause no look-up at all.
    let foreign = changed(&claims, &json!({ "iss": "https://elsewhere.example.org" }));
    for token in [key.token(&foreign).unwrap(), "opaque".to_owned()] {
        assert_eq!(get(&service, &token, "/labs/ada").await.status, 401);
    }
    assert_eq!(issuer.key_sets(), asked);
    assert_eq!(get(&service, &key.token(&claims).unwrap(), "/labs/ada").await.status, 404);
}

#[tokio::test]
async fn without_the_provider_known_keys_are_used_and_others_get_503() {
    let (known, new) = (SigningKey::p256("1").unwrap(), SigningKey::p256("2").unwrap());
    let issuer = Issuer::start(&[&known]).await.unwrap();
    let service = service(&issuer).await;
    let claims = issuer.claims("ada");
    let by_known = known.token(&claims).unwrap();
    assert_eq!(get(&service, &by_known, "/labs/ada").await.status, 404);
    issuer.has(IssuerFault::Away);
    wait_for(&service, &new.token(&claims).unwrap(), "503 identity_provider_unavailable").await;
    assert_eq!(get(&service, &by_known, "/labs/ada").await.status, 404);
}

/// An attacker who can change the provider's answers, or listens at another address, must not choose the keys.
#[tokio::test]
async fn keys_from_elsewhere_and_answers_that_are_no_key_set_are_not_used() {
    let (key, foreign) = (SigningKey::ed25519("e").unwrap(), SigningKey::ed25519("e").unwrap());
    let elsewhere = Issuer::start(&[&foreign]).await.unwrap();
    let faults = [
        IssuerFault::Away,
        IssuerFault::DescribesAnother,
        IssuerFault::Redirects(elsewhere.keys_url()),
        IssuerFault::HugeKeySet,
        IssuerFault::ManyKeys,
        IssuerFault::Html,
    ];
    let cases = faults.map(|fault| {
        let (key, foreign) = (&key, &foreign);
        async move {
            let issuer = Issuer::start(&[key]).await.unwrap();
            issuer.has(fault.clone());
            let service = service(&issuer).await;
            for key in [key, foreign] {
                let answer = get(&service, &key.token(&issuer.claims("ada")).unwrap(), "/labs/ada").await;
                assert_eq!(answer.problem().unwrap(), "503 identity_provider_unavailable", "{fault:?}");
                assert!(!answer.header("retry-after").is_empty(), "{fault:?}");
            }
            service.logged("the OpenID Connect provider's keys cannot be read").await.unwrap();
        }
    });
    join_all(cases).await;
    assert_eq!(elsewhere.asked(), 0);
}

#[tokio::test]
async fn configured_keys_need_no_description() {
    let key = SigningKey::ed25519("e").unwrap();
    let issuer = Issuer::start(&[&key]).await.unwrap();
    issuer.has(IssuerFault::DescribesAnother);
    let service = Service::start_with(BINARY, |config| {
        config["auth"] = auth(&issuer);
        config["auth"]["oidc"]["jwks_url"] = json!(issuer.keys_url());
    });
    let service = service.await.unwrap();
    assert_eq!(get(&service, &key.token(&issuer.claims("ada")).unwrap(), "/labs/ada").await.status, 404);
    assert_eq!(issuer.asked(), 1);
}
