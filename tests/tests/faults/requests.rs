//! Single requests fail: each request of a spawn and of a stop in turn.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use wasmspawner_tests::proxy::{Fault, Rule};

use crate::setup::{Setup, eventually, lab, start, stop};

/// The requests of a spawn, and of a stop.
const REQUESTS: [&str; 9] = [
    "create spawns",
    "create namespaces",
    "create secrets",
    "create configmaps",
    "create pods",
    "update spawns",
    "delete pods",
    "delete namespaces",
    "delete spawns",
];

/// The requests that differ if namespaces are retained.
const REQUESTS_IN_RETAINED_NAMESPACES: [&str; 4] =
    ["create namespaces", "create pods", "delete-all secrets", "delete-all configmaps"];

/// The number of cases that run in parallel. Of a policy, 32 calls run at once, and a busy machine has no time for
/// more.
const AT_ONCE: usize = 30;

/// The expected result of a fault in one request.
struct Expected {
    fault: Fault,
    /// True if a spawn succeeds in spite of the fault.
    passes: bool,
}

fn faults() -> Vec<Expected> {
    let passes = |fault| Expected { fault, passes: true };
    let may_fail = |fault| Expected { fault, passes: false };
    vec![
        passes(Fault::Drop),
        passes(Fault::LoseAnswer),
        passes(Fault::Delay(Duration::from_secs(1))),
        passes(Fault::INTERNAL_ERROR),
        passes(Fault::TOO_MANY_REQUESTS),
        passes(Fault::UNAVAILABLE),
        may_fail(Fault::Truncate),
        may_fail(Fault::Stall),
        may_fail(Fault::CONFLICT),
        may_fail(Fault::UNAUTHORIZED),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn any_request_may_fail_in_any_way() {
    let setup = Setup::start(|config| config["kubernetes"]["request_timeout"] = json!("2s")).await;
    cases(&setup, &REQUESTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_request_may_fail_in_retained_namespaces() {
    let retaining = |config: &mut Value| {
        config["kubernetes"]["request_timeout"] = json!("2s");
        config["kubernetes"]["namespaces"] = json!("retain");
        config["kubernetes"]["delete_namespaces_after"] = Value::Null;
    };
    let setup = Setup::start(retaining).await;
    cases(&setup, &REQUESTS_IN_RETAINED_NAMESPACES).await;
}

async fn cases(setup: &Setup, requests: &[&str]) {
    let faults = faults();
    let cases = requests.iter().flat_map(|request| faults.iter().map(move |expected| (request, expected)));
    let cases = cases.flat_map(|(request, expected)| [1, 2].map(|times| (request, expected, times)));
    let cases: Vec<_> = cases.enumerate().collect();
    let mut running = futures::stream::iter(cases)
        .map(|(number, (request, expected, times))| one_case(setup, number, request, expected, times))
        .buffer_unordered(AT_ONCE);
    while running.next().await.is_some() {}
    setup.nothing_is_left("case", "nothing is left").await;
    assert!(!setup.service.log().contains("panicked"), "{}", setup.service.log());
}

async fn one_case(setup: &Setup, number: usize, request: &str, expected: &Expected, times: usize) {
    let name = format!("case{number}x");
    let case = format!("{request}: {:?}, {times} times ({name})", expected.fault);
    let user = setup.service.user(&name).unwrap();
    // The rule applies only to objects of this case, whose names contain its username.
    let (verb, kind) = request.split_once(' ').unwrap();
    let prefix = match kind {
        "spawns" => "/apis/wasmspawner.io/v1alpha1/namespaces/wasmspawner/spawns/lab-".to_owned(),
        _ => "/api/v1/namespaces/nublado-".to_owned(),
    };
    let rule = Rule::new(&format!("{verb} {kind} {prefix}{name}"), expected.fault.clone()).times(times);
    let rule = setup.proxy.add(rule);

    let answer = user.spawn(&name).await.unwrap();
    if answer.status == 303 {
        let events = user.events(&name).await.unwrap().to_end().await.unwrap();
        let last = events.last().unwrap();
        assert!(last.kind == "complete" || !expected.passes, "{case}: {events:#?}");
        if last.kind != "complete" {
            let found = lab(&user, &name).await;
            assert!(found["reason"].is_string() && found["message"].is_string(), "{case}: {found:#}");
        }
    } else {
        assert!(!expected.passes, "{case}: {answer:?}");
        assert_eq!(answer.status, 503, "{case}: {answer:?}");
    }
    stop(&user, &name).await;
    setup.nothing_is_left(&name, &format!("{case}: nothing is left")).await;
    assert!(rule.hits() > 0, "{case}: no such request was made");
    setup.proxy.remove(&rule);

    start(&user, &name).await;
    stop(&user, &name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_sends_one_request_per_object_and_two_more() {
    costs_objects_and_two(&Setup::start(|_| {}).await).await;
}

/// Checks the requests of a spawn. ada must not have a lab.
pub(crate) async fn costs_objects_and_two(setup: &Setup) {
    let ada = setup.service.user("ada").unwrap();
    // For a user's first lab the service also records that there was one.
    ada.spawn_to_end("ada").await.unwrap();
    stop(&ada, "ada").await;
    setup.nothing_is_left("ada", "nothing is left").await;

    setup.proxy.take_counts();
    ada.spawn_to_end("ada").await.unwrap();
    eventually("it is written down", async || {
        let record = setup.records().get("lab-ada").await.unwrap();
        record.data["status"]["readyAt"].is_string().then_some(())
    })
    .await;
    let mut counts = setup.proxy.take_counts();
    // The Lease is renewed all the time, whatever happens.
    counts.retain(|what, _| !what.starts_with("watch ") && what != "update leases");
    let objects = setup.count_objects("ada").await;
    assert_eq!(counts.values().sum::<usize>(), objects + 2, "{counts:#?}");
    assert_eq!((counts["create spawns"], counts["update spawns"]), (1, 1), "{counts:#?}");
}
