//! Labs that JupyterHub no longer knows, with a fake Hub that has all kinds of faults; `tests/e2e` uses a real one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::hub::{FakeHub, Fault, TOKEN};
use wasmspawner_tests::service::Service;

use super::running::until;
use crate::BINARY;

/// A service that checks every 100 ms, and stops labs that have been forgotten for `stop_after`.
async fn service(hub: &FakeHub, stop_after: Option<&str>) -> Service {
    service_that_waits(hub, "1m", stop_after).await
}

/// The same, with a time limit for the Hub's answers.
async fn service_that_waits(hub: &FakeHub, timeout: &str, stop_after: Option<&str>) -> Service {
    let mut service = Service::prepare(BINARY, |_| {}).unwrap();
    let file = service.folder().join("hub.token");
    write_token(&file, TOKEN, 0o600);
    let forgotten = json!({ "check_every": "100ms", "min_age": "1ms", "stop_after": stop_after });
    let section =
        json!({ "api_url": hub.api_url(), "token_file": file, "timeout": timeout, "forgotten": forgotten });
    service
        .reconfigure(|config| {
            config["hub"] = section;
            config["embedded"]["keep_labs"] = true.into();
        })
        .unwrap();
    service.run().await.unwrap();
    service
}

/// Replaces the token file at once: the service reads it at each check, and sees the token and its mode change
/// together.
fn write_token(file: &Path, token: &str, mode: u32) {
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{token}\n")).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::rename(new, file).unwrap();
}

async fn run(service: &Service, names: &[&str]) {
    let started = join_all(names.iter().map(async |name| {
        let user = name.split('/').next().unwrap();
        let events = service.user(user).unwrap().spawn_to_end(name).await.unwrap();
        assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    }));
    started.await;
}

async fn report(service: &Service) -> Value {
    let answer = service.hub().unwrap().get(&format!("{PREFIX}/forgotten")).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json().unwrap()
}

fn users(report: &Value) -> Vec<&str> {
    report["forgotten"].as_array().unwrap().iter().map(|lab| lab["username"].as_str().unwrap()).collect()
}

/// Waits until the service has checked `count` more times with this outcome.
async fn wait_for_checks(service: &Service, outcome: &str, count: u64) {
    let now = async || {
        let metrics = service.probes().get("/metrics").await.unwrap().body;
        let line = format!("wasmspawner_hub_checks_total{{outcome=\"{outcome}\"}} ");
        metrics.lines().find_map(|text| text.strip_prefix(&line)?.parse::<u64>().ok()).unwrap_or_default()
    };
    let first = now().await;
    let mut again = tokio::time::interval(Duration::from_millis(20));
    let enough = async {
        while now().await < first + count {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), enough).await.unwrap();
}

#[tokio::test]
async fn a_lab_that_the_hub_does_not_know_is_listed_and_runs_on() {
    let hub = FakeHub::start(&["ada", "bob", "joan"]).await.unwrap();
    let service = service(&hub, None).await;
    run(&service, &["ada", "bob", "grace", "grace/servers/gpu"]).await;
    wait_for_checks(&service, "compared", 3).await;
    let forgotten = report(&service).await;
    assert_eq!(users(&forgotten), ["grace", "grace"], "{forgotten:#}");
    assert_eq!((&forgotten["labs"], &forgotten["forgotten"][1]["server"]), (&json!(4), &json!("gpu")));
    assert_eq!((&forgotten["stop_after_seconds"], &forgotten["withheld"]), (&Value::Null, &Value::Null));
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    assert!(metrics.contains("wasmspawner_forgotten_labs 2\n"), "{metrics}");
    hub.knows(&["ada", "bob", "grace"]);
    wait_for_checks(&service, "compared", 2).await;
    let forgotten = report(&service).await;
    assert_eq!(
        forgotten["forgotten"].as_array().unwrap().len(),
        1,
        "the Hub has no server gpu: {forgotten:#}"
    );
    assert_eq!(
        service
            .hub()
            .unwrap()
            .get(&format!("{PREFIX}/labs"))
            .await
            .unwrap()
            .json()
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test]
async fn a_lab_that_stays_forgotten_is_stopped_and_its_history_says_why() {
    let hub = FakeHub::start(&["ada", "grace"]).await.unwrap();
    let service = service(&hub, Some("1s")).await;
    run(&service, &["ada", "grace"]).await;
    hub.knows(&["ada"]);
    let grace = service.user("grace").unwrap();
    until(&grace, "grace", Value::is_null).await;
    let history = grace.get(&format!("{PREFIX}/labs/grace/history")).await.unwrap().json().unwrap();
    assert_eq!(history[0]["kind"], "stop", "{history:#}");
    assert!(
        history[0]["events"].to_string().contains("JupyterHub has not known this lab for"),
        "{history:#}"
    );
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
    service.logged("because JupyterHub does not know it any more").await.unwrap();
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    assert!(metrics.contains("wasmspawner_forgotten_labs_stopped_total 1\n"), "{metrics}");
}

/// No lab is stopped during any of these faults, but after them the forgotten lab is.
#[tokio::test]
async fn no_lab_is_stopped_while_the_hub_has_a_fault() {
    let hub = FakeHub::start(&["ada", "bob", "joan"]).await.unwrap();
    let service = service_that_waits(&hub, "3s", Some("1s")).await;
    hub.has(Fault::Away);
    run(&service, &["ada", "bob", "joan", "grace"]).await;
    let client = service.hub().unwrap();
    for (fault, outcome, expected) in [
        (Fault::Away, "no_answer", "503 hub_unavailable"),
        (Fault::ListFails, "no_answer", "503 hub_unavailable"),
        (Fault::HalfAPage, "no_answer", "503 hub_unavailable"),
        (Fault::NoSecondPage, "no_answer", "503 hub_unavailable"),
        (Fault::Html, "refused", "502 hub_refused"),
        (Fault::Silent, "no_answer", "503 hub_unavailable"),
    ] {
        hub.has(fault);
        // The first check may have begun before the fault. A request to the silent Hub times out after three seconds.
        wait_for_checks(&service, outcome, if fault == Fault::Silent { 2 } else { 15 }).await;
        let answer = client.get(&format!("{PREFIX}/forgotten")).await.unwrap();
        assert_eq!(answer.problem().unwrap(), expected, "{fault:?}: {answer:?}");
        for name in ["ada", "bob", "joan", "grace"] {
            assert_eq!(
                client.lab(name).await.unwrap().json().unwrap()["status"],
                "running",
                "{fault:?} {name}"
            );
        }
    }
    hub.has(Fault::None);
    until(&client, "grace", Value::is_null).await;
    assert_eq!(client.lab("ada").await.unwrap().json().unwrap()["status"], "running");
}

#[tokio::test]
async fn no_lab_is_stopped_when_the_hub_forgets_most_of_them() {
    let hub = FakeHub::start(&[]).await.unwrap();
    let mut service = service(&hub, Some("1s")).await;
    let names: Vec<String> = (0..12).map(|number| format!("user-{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // The Hub knows all labs until they run. With up to nine labs, all may count as forgotten.
    hub.knows(&names);
    run(&service, &names).await;
    hub.knows(&[]);
    wait_for_checks(&service, "withheld", 15).await;
    let doubted = report(&service).await;
    assert_eq!(users(&doubted), names, "they are listed");
    assert!(doubted["withheld"].as_str().unwrap().starts_with("12 of 12 labs look forgotten"), "{doubted:#}");
    assert_eq!(doubted["forgotten"][0]["stops_in_seconds"], Value::Null);
    service.logged("12 of 12 labs look forgotten").await.unwrap();
    let running = service.hub().unwrap().get(&format!("{PREFIX}/labs")).await.unwrap().json().unwrap();
    assert_eq!(running.as_array().unwrap().len(), 12);

    // The result is the same after a restart. Six forgotten labs of twelve are trusted.
    service.crash_and_restart().await.unwrap();
    wait_for_checks(&service, "withheld", 3).await;
    hub.knows(&names[6..]);
    let client = service.hub().unwrap();
    for name in &names[..6] {
        until(&client, name, Value::is_null).await;
    }
    assert_eq!(client.get(&format!("{PREFIX}/labs")).await.unwrap().json().unwrap(), json!(names[6..]));
}

/// While the Hub's answer is delayed, the user stops the forgotten lab and starts another.
#[tokio::test]
async fn a_lab_that_replaces_a_forgotten_one_is_not_stopped() {
    let hub = FakeHub::start(&[]).await.unwrap();
    hub.has(Fault::Slow);
    let service = service(&hub, Some("100ms")).await;
    // The service reads its labs before each list, so the first list does not count for this lab.
    asked(&hub, 1).await;
    run(&service, &["ada"]).await;
    for list in 2..=3 {
        hub.let_pass();
        asked(&hub, list).await;
    }
    let ada = service.user("ada").unwrap();
    let before = ada.lab("ada").await.unwrap().json().unwrap();
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    until(&ada, "ada", Value::is_null).await;
    run(&service, &["ada"]).await;
    hub.let_pass();
    asked(&hub, 4).await;
    service.logged("another has taken its place").await.unwrap();
    let lab = ada.lab("ada").await.unwrap().json().unwrap();
    assert_eq!(lab["status"], "running", "{lab:#}");
    assert_ne!(lab["job_id"], before["job_id"]);
}

/// Waits until the Hub was asked for this number of lists.
async fn asked(hub: &FakeHub, lists: usize) {
    let mut again = tokio::time::interval(Duration::from_millis(20));
    let waiting = async {
        while hub.lists() < lists {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap();
}

#[tokio::test]
async fn the_error_about_a_token_that_the_hub_refuses_says_what_to_do() {
    let hub = FakeHub::start(&["ada"]).await.unwrap();
    let service = service(&hub, Some("1s")).await;
    run(&service, &["ada"]).await;
    let file = service.folder().join("hub.token");
    let client = service.hub().unwrap();
    // A check has to see each state first; until then the last result is shown.
    let expect_refusal = async |expected: &str| {
        wait_for_checks(&service, "refused", 2).await;
        let answer = client.get(&format!("{PREFIX}/forgotten")).await.unwrap();
        assert_eq!(answer.problem().unwrap(), "502 hub_refused", "{answer:?}");
        assert!(answer.body.contains(expected), "{expected}: {answer:?}");
    };
    hub.grants(&["list:users!group=staff", "read:servers"]);
    expect_refusal("the scopes list:users, for all users").await;
    // From now on the lab would be stopped.
    hub.knows(&[]);
    hub.grants(&["list:users"]);
    expect_refusal("the scopes read:servers, for all users").await;
    write_token(&file, "another-token", 0o600);
    hub.grants(&["list:users", "read:servers"]);
    expect_refusal("c.JupyterHub.services").await;
    write_token(&file, TOKEN, 0o644);
    expect_refusal("has mode 0644").await;
    std::fs::remove_file(&file).unwrap();
    expect_refusal("hub.token_file: cannot read").await;
    assert_eq!(client.lab("ada").await.unwrap().json().unwrap()["status"], "running");
    assert!(!service.log().contains(TOKEN), "no token is ever logged");
    // A corrected token file is used at the next check.
    write_token(&file, TOKEN, 0o600);
    until(&client, "ada", Value::is_null).await;
}

#[tokio::test]
async fn parallel_requests_for_the_list_ask_the_hub_once() {
    let hub = FakeHub::start(&[]).await.unwrap();
    let mut service = service(&hub, None).await;
    let hourly = |config: &mut Value| {
        config["hub"] = json!({
            "api_url": hub.api_url(), "token_file": config["state_dir"].as_str().unwrap().replace("state", "hub.token"),
            "forgotten": { "check_every": "1h" },
        });
    };
    service.reconfigure(hourly).unwrap();
    service.crash_and_restart().await.unwrap();
    let before = hub.lists();
    let client = service.hub().unwrap();
    let begun = Instant::now();
    let asked = join_all((0..200).map(|_| client.get("/spawner/v1/forgotten")));
    assert!(asked.await.into_iter().all(|answer| answer.unwrap().status == 200));
    // Two lists, in case the first was too old by then, and one for the service's own check. A list is used for two
    // seconds.
    let lists = hub.lists() - before;
    let most = 3 + begun.elapsed().as_secs() / 2;
    assert!(lists as u64 <= most, "{lists} lists and not {most}");
    let ada = service.user("ada").unwrap();
    let refused = ada.get("/spawner/v1/forgotten").await.unwrap();
    assert_eq!(refused.problem().unwrap(), "403 permission_denied");
}

#[tokio::test]
async fn without_a_hub_token_the_answer_names_the_missing_key() {
    let service = Service::start(BINARY).await.unwrap();
    let answer = service.hub().unwrap().get(&format!("{PREFIX}/forgotten")).await.unwrap();
    assert_eq!(answer.problem().unwrap(), "409 hub_not_configured");
    assert!(answer.body.contains("hub.token_file"), "{answer:?}");
}
