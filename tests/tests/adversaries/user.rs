//! A user of JupyterHub, with a token of their own.

use serde_json::json;
use wasmspawner_tests::api::PREFIX;
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
    let (user, admin) = (service.user("fault.pull-failure").unwrap(), service.admin().unwrap());
    let env: serde_json::Map<_, _> =
        (0..500).map(|number| (format!("T{number:03}{}", "A".repeat(240)), json!("x".repeat(200)))).collect();
    let body = json!({ "env": env });
    let before = resident(&service);
    for number in 0..150 {
        let lab = format!("fault.pull-failure/servers/x{number}");
        let answer = user.spawn_with(&lab, &body).await.unwrap();
        assert_eq!(answer.status, 303, "{answer:?}");
        let events = user.events(&lab).await.unwrap().to_end().await.unwrap();
        assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    }
    let labs = until_some(async || {
        let list = admin.get(&format!("{PREFIX}/lab-status")).await.unwrap();
        let labs = list.json().unwrap()["labs"].as_array().unwrap().clone();
        (labs.len() <= 3).then_some(labs)
    })
    .await;
    assert!(labs.len() == 3 && labs.iter().all(|lab| lab["status"] == "failed"), "{labs:?}");
    let newest = user.lab("fault.pull-failure/servers/x149").await.unwrap().json().unwrap();
    assert_eq!((&newest["env"], &newest["options"]), (&json!({}), &json!({})), "{newest:#}");
    let grown = resident(&service).saturating_sub(before);
    assert!(grown < 20, "{grown} MiB more, for {} failed labs", labs.len());
}
