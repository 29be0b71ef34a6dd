//! `GET /policies` and `POST /policies/reload`

use http::Method;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;

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
