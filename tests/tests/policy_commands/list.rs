//! `policy list`, of a running service.

use serde_json::{Value, json};
use wasmspawner_core::users::access::Scope;
use wasmspawner_tests::service::Service;

use super::{BINARY, component, refusal, told};

#[tokio::test(flavor = "multi_thread")]
async fn the_policies_of_a_service_are_listed() {
    let door = component("policy-deny-group");
    let with_door = |config: &mut Value| {
        config["policies"] = json!([{
            "name": "door", "path": door, "config": { "deny": ["guests"] }, "candidate": { "config": { "deny": ["x"] } },
        }]);
    };
    let mut service = Service::start_with(BINARY, with_door).await.unwrap();
    let url = format!("http://{}/spawner/v1", service.api());
    // The tokens of a service of the one-machine mode are in its state directory.
    let state_dir = service.folder().to_str().unwrap().to_owned();
    let list = ["list", "--url", &url, "--state-dir", &state_dir];
    let here = service.folder().to_owned();

    let listed = told(&here, &list);
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("NAME  TITLE       VERSION  STATE     DIGEST"), "{listed}");
    assert!(lines[1].starts_with("door  deny-group  "), "{listed}");
    assert!(lines[1].contains("  prepared  sha256:") && lines[1].ends_with(&format!("  {door}")), "{listed}");
    assert!(lines[1].contains("  config,prepare,authorize  "), "{listed}");
    assert!(lines[2].starts_with("door: its candidate sha256:"), "{listed}");
    let as_json: Value = serde_json::from_str(&told(&here, &[&list[..], &["--json"]].concat())).unwrap();
    assert_eq!((&as_json[0]["name"], &as_json[0]["source"]), (&json!("door"), &json!(door)));

    // Only administrators see them.
    service.client("ada", &[Scope::ExecNotebook]).unwrap();
    let refused = refusal(&here, &["list", "--url", &url, "--token", "ada-ExecNotebook"]);
    assert!(refused.starts_with("error: "), "{refused}");
    service.kill();
    assert!(refusal(&here, &list).contains("cannot be asked; does it run there?"));
}
