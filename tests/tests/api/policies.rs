//! `GET /policies` and `POST /policies/reload`

use http::Method;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

#[tokio::test]
async fn only_administrators_read_the_loaded_policies() {
    let service = Service::start(BINARY).await.unwrap();
    let path = format!("{PREFIX}/policies");
    let policies = service.admin().unwrap().get(&path).await.unwrap().json().unwrap();
    assert_eq!(policies[0]["name"], "stagehand", "{policies:#}");
    assert_eq!(policies[0]["wit_version"], "wasmspawner:policy@0.1.0");
    let hooks: Vec<_> =
        policies[0]["hooks"].as_array().unwrap().iter().filter_map(|hook| hook.as_str()).collect();
    assert!(hooks.contains(&"authorize") && hooks.contains(&"build-pod"), "{hooks:?}");
    for other in [service.hub().unwrap(), service.user("ada").unwrap()] {
        assert_eq!(other.get(&path).await.unwrap().problem().unwrap(), "403 permission_denied");
    }
}

#[tokio::test]
async fn a_reload_changes_all_or_nothing() {
    let service = Service::start_with(BINARY, |config| {
        let copy = std::env::temp_dir().join(format!("stagehand-{}.wasm", std::process::id()));
        std::fs::copy(config["policies"][0]["path"].as_str().unwrap(), &copy).unwrap();
        config["policies"][0]["path"] = copy.to_str().unwrap().into();
    })
    .await
    .unwrap();
    let copy = std::env::temp_dir().join(format!("stagehand-{}.wasm", std::process::id()));
    let admin = service.admin().unwrap();
    let reload = || admin.send(admin.request(Method::POST, &format!("{PREFIX}/policies/reload")));
    assert_eq!(reload().await.unwrap().status, 200);
    std::fs::write(&copy, "no component").unwrap();
    let refused = reload().await.unwrap();
    std::fs::remove_file(&copy).unwrap();
    assert_eq!(refused.problem().unwrap(), "409 reload_failed");
    assert!(refused.body.contains("stagehand"), "{}", refused.body);
    let policies = admin.get(&format!("{PREFIX}/policies")).await.unwrap().json().unwrap();
    assert!(policies[0]["last_error"].is_string(), "{policies:#}");
    admin.spawn_to_end("ada").await.unwrap();
}

/// The operator replaces the present component, at first by mistake with a broken one.
#[tokio::test]
async fn a_changed_component_is_used_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("site.wasm");
    std::fs::copy(guests::component("guest-stagehand"), &path).unwrap();
    let of_site = path.clone();
    let service = Service::start_with(BINARY, |config| {
        config["policies"][0]["path"] = of_site.to_str().unwrap().into();
    })
    .await
    .unwrap();
    let admin = service.admin().unwrap();
    let policy = async || admin.get(&format!("{PREFIX}/policies")).await.unwrap().json().unwrap()[0].clone();
    let in_use = async || {
        let metrics = service.probes().get("/metrics").await.unwrap().body;
        metrics.lines().any(|line| line == "wasmspawner_last_reload_successful 1")
    };
    let first = policy().await;
    assert!(in_use().await);

    std::fs::write(&path, "no component").unwrap();
    let kept =
        until_some(async || Some(policy().await).filter(|policy| policy["last_error"].is_string())).await;
    assert_eq!(kept["digest"], first["digest"], "{kept:#}");
    until_some(async || (!in_use().await).then_some(())).await;
    admin.spawn_to_end("ada").await.unwrap();

    // A link out of the folder is not followed, even to a component.
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(guests::component("guest-stagehand"), &path).unwrap();
    until_some(async || {
        let error = policy().await["last_error"].as_str().unwrap_or_default().to_owned();
        error.contains("a link that leads out of its folder").then_some(())
    })
    .await;

    std::fs::remove_file(&path).unwrap();
    let component = std::fs::read(guests::component("guest-stagehand")).unwrap();
    let with_a_custom_section = [component.as_slice(), &[0, 2, 1, b'x']].concat();
    std::fs::write(&path, with_a_custom_section).unwrap();
    until_some(async || Some(policy().await).filter(|policy| policy["digest"] != first["digest"])).await;
    until_some(async || in_use().await.then_some(())).await;
}

#[tokio::test]
async fn policies_hear_what_happens_and_nobody_waits_for_them() {
    let service = Service::start(BINARY).await.unwrap();
    let heard = async |event: &str| {
        service.logged(&format!("heard: Happening::{event}")).await.unwrap();
    };
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    heard("Spawned ada/ None None None").await;
    heard(r#"Ready ada/ None Some("lab:1") None"#).await;
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    heard(r#"Stopped ada/ None Some("lab:1") None"#).await;
    let denied = service.user("denied").unwrap();
    assert_eq!(denied.spawn("denied").await.unwrap().status, 403);
    heard(r#"Denied denied/ None None Some("authorize.decide")"#).await;
    let failing = service.user("fault.pull-failure").unwrap();
    failing.spawn_to_end("fault.pull-failure").await.unwrap();
    heard("Failed fault.pull-failure/ None").await;

    // A policy that never finishes with an event is ended. Its user and others are not affected.
    let deaf = service.user("deaf").unwrap();
    deaf.spawn_to_end("deaf").await.unwrap();
    assert_eq!(deaf.lab("deaf").await.unwrap().json().unwrap()["status"], "running");
    let bob = service.user("bob").unwrap();
    bob.spawn_to_end("bob").await.unwrap();
    heard("Ready bob/").await;
    service.logged("a policy failed when it heard of an event").await.unwrap();
}

/// The operator tries a candidate for a policy while users work.
#[tokio::test]
async fn a_candidate_is_compared_with_its_policy_and_changes_no_lab() {
    let service = Service::start_with(BINARY, |config| {
        let next = guests::component("policy-default");
        config["policies"][0]["candidate"] = serde_json::json!({ "path": next, "config": {} });
    })
    .await
    .unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["image"]["reference"], "lab:1");
    let admin = service.admin().unwrap();
    let different = until_some(async || {
        let policies = admin.get(&format!("{PREFIX}/policies")).await.unwrap().json().unwrap();
        let last = policies[0]["candidate"]["last"].as_array().unwrap().clone();
        last.into_iter().find(|answer| answer["hook"] == "build-pod.customize")
    })
    .await;
    let places = different["places"].as_array().unwrap();
    assert!(places.iter().any(|place| place == "/image"), "{different:#}");
    assert_eq!(different["input"]["user"]["name"], "ada");
    let counted = r#"wasmspawner_policy_comparisons_total{policy="stagehand",hook="build-pod.customize",kind="different"} 1"#;
    // The comparison is counted after it is reported.
    until_some(async || {
        let metrics = service.probes().get("/metrics").await.unwrap().body;
        metrics.contains(counted).then_some(())
    })
    .await;
}
