//! `GET /lab-status`

use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;

use super::running::until;
use crate::BINARY;

#[tokio::test]
async fn the_hub_reads_all_labs_once_and_then_only_changes() {
    let keeping = |config: &mut Value| config["embedded"]["keep_labs"] = true.into();
    let mut service = Service::start_with(BINARY, keeping).await.unwrap();
    let (ada, grace, hub) =
        (service.user("ada").unwrap(), service.user("grace").unwrap(), service.hub().unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    let ask = async |since: &str| {
        hub.get(&format!("{PREFIX}/lab-status?since={since}")).await.unwrap().json().unwrap()
    };
    let all = ask("").await;
    assert_eq!((&all["complete"], all["labs"].as_array().unwrap().len()), (&json!(true), 1), "{all:#}");
    let lab = &all["labs"][0];
    assert_eq!(
        (&lab["username"], &lab["server"], &lab["status"]),
        (&json!("ada"), &json!(""), &json!("running"))
    );
    assert!(lab["url"].as_str().unwrap().starts_with("http://"), "{lab:#}");

    let revision = all["revision"].as_str().unwrap();
    assert_eq!(ask(revision).await["labs"], json!([]), "nothing has changed");
    grace.spawn_to_end("grace/servers/gpu").await.unwrap();
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    until(&ada, "ada", Value::is_null).await;
    let changed = ask(revision).await;
    assert_eq!(changed["complete"], false);
    let mut statuses: Vec<_> = changed["labs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lab| format!("{}/{}: {}", lab["username"], lab["server"], lab["status"]))
        .collect();
    statuses.sort();
    assert_eq!(statuses, [r#""ada"/"": null"#, r#""grace"/"gpu": "running""#]);

    service.crash_and_restart().await.unwrap();
    let after = ask(changed["revision"].as_str().unwrap()).await;
    assert_eq!((&after["complete"], after["labs"].as_array().unwrap().len()), (&json!(true), 1), "{after:#}");
    let refused = ada.get(&format!("{PREFIX}/lab-status")).await.unwrap();
    assert_eq!(
        refused.problem().unwrap(),
        "403 permission_denied",
        "who has a lab is not everybody's to know"
    );
}
