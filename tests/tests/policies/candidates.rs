//! A candidate receives the same calls as its policy, and changes nothing.

use std::collections::BTreeMap;

use wasmspawner_policies::{CandidateReport, Hook, PolicyName};

use super::*;

fn with_candidate(live: PolicySpec, candidate: PolicySpec) -> PolicySpec {
    PolicySpec { candidate: Some(Box::new(candidate)), ..live }
}

/// A policy with a candidate that never answers. The candidate sleeps, so its calls end after a second, whatever CPU
/// they get. A request for a pod calls three hooks, and neither policy has `lab-server` and `lab-files`.
fn with_stuck_candidate() -> PolicySpec {
    let live = PolicySpec { name: "who".into(), ..hostile("data") };
    let stuck = PolicySpec { name: "who (candidate)".into(), ..within(SHORT, hostile("sleep")) };
    with_candidate(live, stuck)
}

/// The report about the candidate once this number of calls has been compared or skipped.
pub(crate) async fn report(policies: &Policies, calls: u64) -> CandidateReport {
    until_some(async || {
        let report = policies.loaded()[0].candidate.clone().unwrap();
        (report.same + report.different + report.skipped == calls).then_some(report)
    })
    .await
}

fn deny(groups: &[&str]) -> serde_json::Value {
    json!({ "deny": groups })
}

#[tokio::test]
async fn answers_are_compared_and_only_those_of_the_policy_count() {
    let live = spec("who", "policy-deny-group", deny(&["guests"]));
    let next = spec("who (candidate)", "policy-deny-group", deny(&["guests", "students"]));
    let compared = Arc::new(Mutex::new(BTreeMap::<_, u32>::new()));
    let seen = Arc::clone(&compared);
    let on_compared = move |policy: &PolicyName, hook: Hook, result: &'static str| {
        *seen.lock().unwrap().entry((policy.to_string(), hook.name(), result)).or_default() += 1;
    };
    let options = EngineOptions { on_compared: Arc::new(on_compared), ..options() };
    let policies = Policies::load(vec![with_candidate(live, next)], options).await.unwrap();
    for (calls, group) in (1..).zip(["staff", "guests", "students"]) {
        let request = spawn_request(user("ada", &[group]));
        let verdicts = policies.authorize(&request).await.unwrap();
        assert_eq!(verdicts[0].value == Verdict::Allow, group != "guests");
        report(&policies, calls).await;
    }
    let told = report(&policies, 3).await;
    assert_eq!((told.same, told.different, told.skipped), (2, 1, 0));
    let last = &told.last[0];
    assert_eq!(
        (last.hook, last.places.as_slice()),
        (Hook::new("authorize.decide"), [String::new()].as_slice())
    );
    assert_eq!(last.input["user"]["groups"][0]["name"], "students");
    assert_eq!(last.input["user"].get("email"), None);
    let count = |result| compared.lock().unwrap()[&("who".to_owned(), "authorize.decide", result)];
    assert_eq!((count("same"), count("different")), (2, 1));
}

/// The policy answers whatever a candidate does, and only a few of the candidate's calls are under way at the same
/// time.
#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_never_answers_keeps_nobody_waiting() {
    let policies = load(vec![with_stuck_candidate()]).await;
    for _ in 0..50 {
        let answers = policies.customize(&LabRequest::default()).await.unwrap();
        assert_eq!(answers[0].customization.working_dir.as_deref(), Some("None None"));
    }
    let told = report(&policies, 3 * 50).await;
    assert!(told.skipped > 0 && told.different > 0, "{told:?}");
    assert!(told.last.len() <= 50);
}

/// The calls of a spawn follow each other more quickly than a slow candidate answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_candidate_is_asked_all_that_a_spawn_asks() {
    let policies = load(vec![with_stuck_candidate()]).await;
    for _ in 0..10 {
        policies.customize(&LabRequest::default()).await.unwrap();
    }
    let told = report(&policies, 3 * 10).await;
    assert_eq!((told.same, told.different, told.skipped), (20, 10, 0));
}

#[tokio::test]
async fn a_candidate_that_cannot_be_loaded_is_told_and_hinders_nothing() {
    let broken = [
        (PolicySpec::new("next", "no-such.wasm"), "no-such.wasm"),
        (spec("next", "policy-deny-group", json!({})), "names no group"),
    ];
    for (candidate, problem) in broken {
        let live = spec("who", "policy-deny-group", deny(&["guests"]));
        let policies = load(vec![with_candidate(live, candidate)]).await;
        assert_eq!(policies.authorize(&spawn_request(user("ada", &[]))).await.unwrap().len(), 1);
        let told = policies.loaded()[0].candidate.clone().unwrap();
        assert!(told.error.as_ref().unwrap().contains(problem) && told.digest.is_none(), "{told:?}");
        assert_eq!((told.same, told.different, told.skipped), (0, 0, 0));
    }
}
