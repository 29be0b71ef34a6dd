//! Policies as real components: their features, and the limits of a hostile policy.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod after_trial;
mod candidates;
mod compile_bombs;
mod component_text;
mod last_good;
mod lines;
mod loading;
mod prepared;
mod published;
mod recipes;
mod resources;
mod signatures;
mod signed_registry;
mod site_data;
mod slow_loads;
mod strange_texts;
mod templates;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use wasmspawner_core::config::OnFailure;
use wasmspawner_core::policy::form::{Form, FormContext};
use wasmspawner_core::policy::{
    Action, AuthorizeRequest, Group, LabRequest, Options, Subject, User, Value, Verdict,
};
use wasmspawner_core::users::quota::Usage;
use wasmspawner_policies::{
    CallBlame, CallError, CallErrorKind, Compiler, EngineOptions, FailedPolicies, LoadErrorKind, Policies,
    PolicyName, PolicySpec,
};
use wasmspawner_tests::guests;
use wasmspawner_tests::waiting::until_some;

use lines::Lines;

/// The program whose command compiles policies.
const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

/// The computing time in milliseconds of a policy that never ends. Even a busy machine gives a policy this much within
/// a second, which is the shortest time of a call.
const SHORT: u64 = 20;

/// The computing time in milliseconds of a policy in whose test time does not matter: the maximum that a policy may
/// have.
const AMPLE: u64 = 10_000;

/// Policy, hook and outcome of a call.
type CallOutcome = (String, &'static str, &'static str);

fn user(name: &str, groups: &[&str]) -> User {
    let group = |name: &&str| Group { name: (*name).into(), gid: None };
    User { name: name.into(), groups: groups.iter().map(group).collect(), ..User::default() }
}

fn spec(name: &str, package: &str, config: serde_json::Value) -> PolicySpec {
    PolicySpec { config, ..PolicySpec::new(name, guests::component(package)) }
}

fn site() -> PolicySpec {
    let example = include_str!("../../../plugins/default/example.json");
    spec("site", "policy-default", serde_json::from_str(example).unwrap())
}

fn hostile(act: &str) -> PolicySpec {
    spec("evil", "guest-hostile", json!({ "act": act }))
}

/// The policy with a limit on its computing time.
fn within(deadline_ms: u64, mut spec: PolicySpec) -> PolicySpec {
    spec.limits.deadline_ms = deadline_ms;
    spec
}

/// Options under which every component is compiled once for all tests.
fn options() -> EngineOptions {
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/policy-cache");
    EngineOptions { cache: Some(cache.into()), ..uncached() }
}

fn uncached() -> EngineOptions {
    let compiler = Compiler { program: BINARY.into(), ..Compiler::default() };
    EngineOptions { compiler, ..EngineOptions::default() }
}

async fn load(specs: Vec<PolicySpec>) -> Policies {
    Policies::load(specs, options()).await.unwrap()
}

async fn refused(spec: PolicySpec) -> LoadErrorKind {
    match Policies::load(vec![spec], options()).await {
        Err(FailedPolicies::Load(error)) => error.kind,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it was loaded"),
    }
}

async fn commit(act: &str) -> CallError {
    commit_by(hostile(act)).await
}

async fn commit_by(spec: PolicySpec) -> CallError {
    let policies = load(vec![spec]).await;
    failed(|| async { policies.customize(&LabRequest::default()).await }).await
}

/// The error of a call, repeated until this machine has CPU for it.
async fn failed<T: Debug, F: Future<Output = Result<T, CallError>>>(call: impl Fn() -> F) -> CallError {
    with_cpu(call).await.unwrap_err()
}

/// The result of a call. The call is repeated, for a minute at most, as long as this machine has no CPU for a long one.
async fn with_cpu<T, F: Future<Output = Result<T, CallError>>>(call: impl Fn() -> F) -> Result<T, CallError> {
    until_some(async || match call().await {
        Err(error) if matches!(error.kind, CallErrorKind::NoCpu(_)) => None,
        outcome => Some(outcome),
    })
    .await
}

fn spawn_request(user: User) -> AuthorizeRequest {
    AuthorizeRequest {
        action: Action::Spawn,
        user,
        server: String::new(),
        options: Options::new(),
        subject: Subject::default(),
    }
}

#[tokio::test]
async fn the_default_policy_decides_a_whole_spawn() {
    let policies = load(vec![site()]).await;
    let ada = user("ada", &["science"]);
    let context = FormContext { user: ada.clone(), server: String::new() };

    let form = policies.render_form(&context).await.unwrap().unwrap();
    assert_eq!(form.policy.as_str(), "site");
    let Form::Fields(fields) = form.value else { panic!("typed fields") };
    let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["image", "size", "reset_user_env", "debug"]);

    let submission = Options::from([("size".into(), Value::Text("gpu".into()))]);
    let options = policies.parse_submission(&submission, &context).await.unwrap().unwrap().value;
    assert_eq!(options["size"], Value::Text("gpu".into()));
    assert_eq!(options["debug"], Value::Boolean(false));

    let verdicts = policies.authorize(&spawn_request(ada.clone())).await.unwrap();
    assert_eq!(verdicts[0].value, Verdict::Allow);

    let quotas = policies.limits(&ada, Usage::default(), &Subject::default()).await.unwrap();
    assert_eq!(quotas[0].value.memory_bytes, Some(64 << 30));
    assert_eq!(quotas[0].value.extended["nvidia.com/gpu"], 1);

    let request = LabRequest { user: ada, options, ..LabRequest::default() };
    let pods = policies.customize(&request).await.unwrap();
    let pod = &pods[0].customization;
    assert_eq!(pod.resources.as_ref().unwrap().memory_limit_bytes, Some(32 << 30));
    assert_eq!(pod.mounts[0].sub_path.as_deref(), Some("{username}"));
    assert_eq!(pod.image.as_ref().unwrap().reference, "quay.io/jupyter/minimal-notebook:python-3.13");
}

#[tokio::test]
async fn a_bad_submission_names_every_field() {
    let policies = load(vec![site()]).await;
    let context = FormContext { user: user("eve", &[]), server: String::new() };
    let submission =
        Options::from([("size".into(), Value::Text("gpu".into())), ("root".into(), Value::Boolean(true))]);
    let error = policies.parse_submission(&submission, &context).await.unwrap_err();
    let CallErrorKind::Invalid(fields) = &error.kind else { panic!("{error}") };
    let names: Vec<_> = fields.iter().map(|field| field.field.as_str()).collect();
    assert_eq!(names, ["size", "root"]);
    assert_eq!(error.kind.blame(), CallBlame::Request);
}

#[tokio::test]
async fn a_second_policy_changes_who_may_spawn() {
    let policies = load(vec![site()]).await;
    let guest = spawn_request(user("eve", &["guests"]));
    assert!(policies.authorize(&guest).await.unwrap().iter().all(|answer| answer.value == Verdict::Allow));

    let keep_out =
        spec("door", "policy-deny-group", json!({"deny": ["guests"], "message": "Not for guests."}));
    policies.replace(vec![keep_out, site()]).await.unwrap();
    let verdicts = policies.authorize(&guest).await.unwrap();
    assert_eq!(verdicts[0].value, Verdict::Deny("Not for guests.".into()));
    assert_eq!(verdicts.len(), 1, "nobody is asked after a denial");
    let form = policies.render_form(&FormContext::default()).await.unwrap().unwrap();
    assert_eq!(form.policy.as_str(), "site", "the other policy has no form and stays out of it");
}

#[tokio::test]
async fn a_form_may_depend_on_the_last_submission_of_the_same_server() {
    let policies = load(vec![hostile("last-options")]).await;
    let last = Options::from([("name".to_owned(), Value::Text("<Ada>".to_owned()))]);
    let default = async |last: &Options| {
        let form = policies.render_form_again(&FormContext::default(), last).await.unwrap().unwrap().value;
        serde_json::to_value(form).unwrap()["fields"][0]["kind"]["text"]["default"].clone()
    };
    assert_eq!(default(&last).await, json!("<Ada>"));
    assert_eq!(default(&Options::new()).await, json!("none"), "nothing is left of the call before");
}

#[tokio::test]
async fn a_hook_that_no_policy_has_gives_no_answer() {
    let policies = load(vec![spec("door", "policy-deny-group", json!({"deny": ["guests"]}))]).await;
    assert!(policies.render_form(&FormContext::default()).await.unwrap().is_none());
    assert!(
        policies.limits(&User::default(), Usage::default(), &Subject::default()).await.unwrap().is_empty()
    );
    assert!(policies.customize(&LabRequest::default()).await.unwrap().is_empty());
    assert_eq!(policies.loaded()[0].hooks, ["config", "prepare", "authorize"]);
}

#[tokio::test]
async fn an_endless_loop_ends_at_its_deadline() {
    assert_eq!(hostile("loop").limits.deadline_ms, 200, "if nothing else is configured");
    let policies = load(vec![within(SHORT, hostile("loop"))]).await;
    let start = Instant::now();
    let error = failed(|| async { policies.customize(&LabRequest::default()).await }).await;
    assert!(matches!(error.kind, CallErrorKind::Deadline(SHORT)), "{error}");
    assert!(start.elapsed() >= Duration::from_millis(15));
    assert_eq!(error.to_string(), "policy `evil`, build-pod.customize: took longer than 20 ms");
}

#[tokio::test(flavor = "current_thread")]
async fn an_endless_loop_does_not_block_other_tasks() {
    let policies = load(vec![hostile("loop")]).await;
    let looping = tokio::spawn({
        let policies = policies.clone();
        async move { policies.customize(&LabRequest::default()).await }
    });
    let mut turns = 0;
    while !looping.is_finished() {
        turns += 1;
        tokio::task::yield_now().await;
    }
    assert!(turns > 10, "the only thread was given back {turns} times");
    assert!(looping.await.unwrap().is_err());
}

#[tokio::test]
async fn a_policy_that_sleeps_is_ended_at_its_deadline() {
    let error = commit_by(within(SHORT, hostile("sleep"))).await;
    assert!(matches!(error.kind, CallErrorKind::Deadline(SHORT)), "{error}");
}

#[tokio::test]
async fn memory_is_limited() {
    let mut spec = within(AMPLE, hostile("memory"));
    spec.limits.memory_bytes = 16 << 20;
    let error = commit_by(spec).await;
    assert!(matches!(error.kind, CallErrorKind::Memory { limit: 16_777_216, .. }), "{error}");
}

#[tokio::test]
async fn a_huge_answer_is_refused() {
    for act in ["huge", "many"] {
        let error = commit_by(within(AMPLE, hostile(act))).await;
        assert!(matches!(error.kind, CallErrorKind::OutputTooLarge(1_048_576)), "{act}: {error}");
    }
}

#[tokio::test]
async fn the_error_of_a_crash_has_the_standard_error_of_the_policy() {
    let panicked = commit("panic").await;
    assert!(matches!(&panicked.kind, CallErrorKind::Trap(words) if words.contains("as asked")), "{panicked}");
    for act in ["recurse", "abort", "exit"] {
        let error = commit(act).await;
        assert!(matches!(error.kind, CallErrorKind::Trap(_)), "{act}: {error}");
        assert_eq!(error.kind.blame(), CallBlame::Policy);
    }
}

#[tokio::test]
async fn each_error_of_a_policy_keeps_its_kind() {
    assert!(matches!(commit("denied").await.kind, CallErrorKind::Denied(why) if why.message == "not for "));
    assert!(
        matches!(commit("invalid").await.kind, CallErrorKind::Invalid(fields) if fields[0].field == "size")
    );
    assert!(matches!(commit("retry").await.kind, CallErrorKind::RetryLater(7)));
    assert!(matches!(commit("internal").await.kind, CallErrorKind::Guest(_)));
}

#[tokio::test]
async fn a_policy_reaches_no_files_and_no_environment() {
    for (act, expected) in [("read-file", "true"), ("environment", "0"), ("random", "1024")] {
        let policies = load(vec![hostile(act)]).await;
        let answers = policies.customize(&LabRequest::default()).await.unwrap();
        assert_eq!(answers[0].customization.working_dir.as_deref(), Some(expected), "{act}");
    }
}

#[tokio::test]
async fn a_log_flood_is_cut_off() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _listening = tracing::subscriber::set_default(subscriber);
    let policies = load(vec![within(AMPLE, hostile("log-flood"))]).await;
    policies.customize(&LabRequest::default()).await.unwrap();
    let (written, dropped) = lines.count("line ", "the rest is dropped");
    assert_eq!((written, dropped), (64, 1));

    policies.replace(vec![within(AMPLE, hostile("log-huge"))]).await.unwrap();
    policies.customize(&LabRequest::default()).await.unwrap();
    assert_eq!(lines.count("xxxx", "the rest is dropped"), (0, 2));
}

#[tokio::test]
async fn a_crash_of_a_skippable_policy_is_ignored_but_its_refusals_hold() {
    let skipped = |act| PolicySpec { on_failure: OnFailure::Skip, ..hostile(act) };
    let policies = load(vec![skipped("panic"), site()]).await;
    let answers = policies.customize(&LabRequest::default()).await.unwrap();
    let names: Vec<_> = answers.iter().map(|answer| answer.author.name()).collect();
    assert_eq!(names, ["site"]);
    assert!(policies.loaded()[0].last_error.as_ref().unwrap().contains("as asked"));

    policies.replace(vec![skipped("denied"), site()]).await.unwrap();
    assert!(policies.customize(&LabRequest::default()).await.is_err());
}

/// A user who could make such a policy fail would not be subject to it.
#[tokio::test]
async fn a_policy_that_decides_is_never_skipped() {
    let skippable = PolicySpec { on_failure: OnFailure::Skip, ..spec("site", "guest-stagehand", json!({})) };
    let policies = load(vec![within(SHORT, skippable)]).await;
    let trapped = spawn_request(User { name: "trapped".into(), ..User::default() });
    let error = failed(|| policies.authorize(&trapped)).await;
    assert_eq!((error.policy.as_str(), error.kind.name()), ("site", "deadline"));
}

#[tokio::test]
async fn too_many_calls_at_once_are_refused_as_overloaded() {
    let options = EngineOptions { slots: 1, slot_wait: Duration::from_millis(20), ..options() };
    let policies = Policies::load(vec![hostile("loop")], options).await.unwrap();
    let request = LabRequest::default();
    let (one, other) = tokio::join!(policies.customize(&request), policies.customize(&request));
    assert!(!matches!(one.unwrap_err().kind, CallErrorKind::Overloaded(_)));
    assert!(matches!(other.unwrap_err().kind, CallErrorKind::Overloaded(20)));
}

#[tokio::test]
async fn every_call_is_counted() {
    let heard: Arc<Mutex<Vec<CallOutcome>>> = Arc::default();
    let listener = Arc::clone(&heard);
    let on_call = move |record: &wasmspawner_policies::CallRecord<'_>| {
        let call = (record.policy.to_string(), record.hook.name(), record.outcome);
        listener.lock().unwrap().push(call);
    };
    let options = EngineOptions { on_call: Arc::new(on_call), ..options() };
    let policies = Policies::load(vec![hostile("retry")], options).await.unwrap();
    heard.lock().unwrap().clear();
    policies.customize(&LabRequest::default()).await.unwrap_err();
    assert_eq!(*heard.lock().unwrap(), [("evil".into(), "build-pod.customize", "retry_later")]);
    policies.replace(vec![published::spec()]).await.unwrap();
    heard.lock().unwrap().clear();
    let context = FormContext { user: user("html", &[]), ..FormContext::default() };
    policies.render_form(&context).await.unwrap_err();
    assert_eq!(*heard.lock().unwrap(), [("published".into(), "form.render", "not_granted")]);
}
