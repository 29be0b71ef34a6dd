//! `wasmspawner debug bundle`: the content that a bug report needs, without secrets.

use std::process::Command;

use http::Method;
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;

use crate::BINARY;

#[tokio::test]
async fn a_bundle_has_what_a_bug_report_needs_and_no_secret() {
    let with_secrets = |config: &mut Value| {
        config["lab"]["env"] = json!({ "SITE_PASSWORD": "marker-of-the-site" });
        config["lab"]["annotations"] = json!({ "example.org/note": "marker-in-an-annotation" });
        config["auth"]["identities"]["users"] =
            json!({ "marker-user": { "uid": 2000, "gid": 2000, "email": "marker@example.org" } });
    };
    let service = Service::start_with(BINARY, with_secrets).await.unwrap();
    let admin = service.admin().unwrap().with_token("marker-of-nobody");
    assert_eq!(admin.lab("ada").await.unwrap().status, 401);
    let (ada, failing) = ("ada", "fault.pull-failure");
    for name in [ada, failing] {
        let user = service.user(name).unwrap();
        let request = user.request(Method::POST, &format!("{PREFIX}/labs/{name}/spawn"));
        let body = json!({
            "options": { "note": "marker-in-an-option", "list": ["marker-in-a-list"] },
            "env": { "API_TOKEN": "marker-in-the-environment", "PLAIN": "marker-in-a-plain-variable" },
        });
        assert_eq!(request.json(&body).send().await.unwrap().status(), 303);
        user.events(name).await.unwrap().to_end().await.unwrap();
    }
    let log = service.folder().join("old.log");
    let lines = "Bearer marker-in-the-log-of-somebody\nhttps://a:marker-pw@host/ marker-in-an-option\nthe last line\n";
    std::fs::write(&log, lines).unwrap();
    let file = service.folder().join("bundle.tar");
    // This creates the token of an administrator, with the text that the harness gives it.
    service.admin().unwrap();
    let output = Command::new(BINARY)
        .args(["debug", "bundle", "--url", &format!("http://{}{PREFIX}", service.api())])
        .args(["--token", "admin-AdminNotebook", "--health-url", &format!("http://{}", service.health())])
        .arg("--config")
        .arg(service.config_file())
        .arg("--log")
        .arg(&log)
        .arg("--output")
        .arg(&file)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let bundle = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
    for part in [
        "configuration.json",
        "readyz.txt",
        "metrics.txt",
        "labs.json",
        "failed-operations.json",
        "policies.json",
        "cluster-version.json",
        "service.log",
    ] {
        assert!(printed.contains(&format!("  {part}\n")), "{part} is not included:\n{printed}");
        assert!(bundle.contains(&format!("wasmspawner-debug/{part}")), "{part}");
    }
    for text in [
        "SITE_PASSWORD",
        "wasmspawner_ready 1",
        "\"digest\": \"sha256:",
        "\"username\": \"ada\"",
        "fault.pull-failure",
        "\"outcome\": \"failed\"",
        "git_version",
        "the last line",
    ] {
        assert!(bundle.contains(text), "{text} is not in the bundle:\n{bundle}");
    }
    for secret in ["marker", "admin-AdminNotebook", "ada-ExecNotebook"] {
        let at = bundle
            .find(secret)
            .map(|at| bundle[at.saturating_sub(200)..].chars().take(300).collect::<String>());
        assert_eq!(at, None, "{secret} is in the bundle");
    }
}

#[test]
fn a_bundle_without_a_service_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.tar");
    let output = Command::new(BINARY)
        .args([
            "debug",
            "bundle",
            "--url",
            "http://127.0.0.1:9/spawner/v1",
            "--token",
            "marker-token",
            "--output",
        ])
        .arg(&file)
        .env_remove("WASMSPAWNER_CONFIG")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("labs.json: the service at http://127.0.0.1:9"), "{printed}");
    assert!(printed.contains("service.log: --log is not given"), "{printed}");
    let bundle = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
    assert!(bundle.contains("version.txt") && !bundle.contains("marker-token"));
}
