//! A user of JupyterHub, with a token of their own.

use serde_json::json;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::{BINARY, resident};

/// The service keeps as many failed labs of a user as the user may have labs, and not what was asked of them.
#[tokio::test]
async fn labs_that_fail_fill_no_memory() {
    let service = Service::start_with(BINARY, |config| {
        config["limits"]["per_user"] =
            json!({ "labs": 3, "spawns_per_minute": 1000, "requests_per_second": 1000 });
    })
    .await
    .unwrap();
    let (ada, admin) = (service.user("ada").unwrap(), service.admin().unwrap());
    let env: serde_json::Map<_, _> =
        (0..500).map(|number| (format!("T{number:03}{}", "A".repeat(250)), json!("x".repeat(200)))).collect();
    let body = json!({ "env": env });
    let before = resident(&service);
    for number in 0..200 {
        // Kubernetes has no names for these servers.
        let answer = ada.spawn_with(&format!("ada/servers/%7Bx{number}"), &body).await.unwrap();
        assert!([303, 422].contains(&answer.status), "{answer:?}");
    }
    let labs = until_some(async || {
        let list = admin.get(&format!("{}/lab-status", wasmspawner_tests::api::PREFIX)).await.unwrap();
        let labs = list.json().unwrap()["labs"].as_array().unwrap().clone();
        (labs.len() <= 3).then_some(labs)
    })
    .await;
    assert!(labs.iter().all(|lab| lab["status"] == "failed"), "{labs:?}");
    let grown = resident(&service).saturating_sub(before);
    assert!(grown < 25, "{grown} MiB more, for {} failed labs", labs.len());
}
