//! `on_failure: last-good`: if a policy fails, the version that was in use before answers.

use std::path::{Path, PathBuf};

use wasmspawner_core::config::DataSource;
use wasmspawner_tests::compiled_policies::CompiledPolicies;

use super::*;

fn version(act: &str) -> PolicySpec {
    PolicySpec { on_failure: OnFailure::LastGood, ..within(AMPLE, hostile(act)) }
}

async fn answer(policies: &Policies) -> Result<Option<String>, CallErrorKind> {
    let answers = policies.customize(&LabRequest::default()).await;
    answers.map(|answers| answers[0].customization.working_dir.clone()).map_err(|error| error.kind)
}

/// A folder of one test, which records the version in use. The machine code of policies is shared by all tests.
pub(crate) struct State {
    folder: tempfile::TempDir,
    compiled: CompiledPolicies,
}

impl State {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // If this fails, other tests compile once more.
        let _ = self.compiled.keep_of(&self.cache());
    }
}

pub(crate) fn alone() -> (State, EngineOptions) {
    let shared = options().cache.unwrap();
    let state =
        State { folder: tempfile::tempdir().unwrap(), compiled: CompiledPolicies::in_folder(&shared) };
    state.compiled.lend_to(&state.cache()).unwrap();
    let options = EngineOptions { cache: Some(state.cache()), ..options() };
    (state, options)
}

#[tokio::test]
async fn the_version_before_answers_where_a_policy_fails() {
    let (_state, options) = alone();
    let policies = Policies::load(vec![version("data")], options).await.unwrap();
    assert!(policies.loaded()[0].last_good.is_none());
    policies.replace(vec![version("panic")]).await.unwrap();
    let good = Some("None None".to_owned());
    assert_eq!(answer(&policies).await.unwrap(), good);
    let loaded = policies.loaded().remove(0);
    assert!(loaded.last_error.unwrap().contains("as asked"), "the failure is told all the same");
    assert_eq!(loaded.last_good.as_ref().unwrap().answers, 1);

    // Another version that fails does not replace the good one, and neither does a reload of the same.
    policies.replace(vec![version("huge")]).await.unwrap();
    policies.reload().await.unwrap();
    assert_eq!(answer(&policies).await.unwrap(), good);

    // A denial by a policy is not a failure.
    policies.replace(vec![version("denied")]).await.unwrap();
    assert!(matches!(answer(&policies).await, Err(CallErrorKind::Denied(_))));
    policies.replace(vec![version("count")]).await.unwrap();
    assert_eq!(answer(&policies).await.unwrap().unwrap(), "/prepared/1/called/0");

    // Without the operator's setting, the request fails.
    policies.replace(vec![hostile("panic")]).await.unwrap();
    assert!(answer(&policies).await.is_err());
    assert!(policies.loaded()[0].last_good.is_none());
}

/// A changed configuration often restarts the service.
#[tokio::test]
async fn the_version_before_answers_after_a_restart_too() {
    let (state, options) = alone();
    let cache = state.path().join("cache");
    let restart = async |policy: PolicySpec| Policies::load(vec![policy], options.clone()).await.unwrap();
    let good = Some("None None".to_owned());
    assert!(restart(version("data")).await.loaded()[0].last_good.is_none());
    for act in ["panic", "panic", "huge", "huge"] {
        let policies = restart(version(act)).await;
        assert_eq!(answer(&policies).await.unwrap(), good, "{act}");
        assert_eq!(policies.loaded()[0].last_good.as_ref().unwrap().answers, 1);
        noted(&cache).await;
    }
    // A version that works replaces the good one, and components are kept as long as they may be needed.
    let policies = restart(version("count")).await;
    assert_eq!(answer(&policies).await.unwrap().unwrap(), "/prepared/1/called/0");
    let policies = restart(version("panic")).await;
    assert_eq!(answer(&policies).await.unwrap().unwrap(), "/prepared/1/called/0");
    assert_eq!(versions(&cache, "wasm").len(), 1, "all are one component");
    noted(&cache).await;

    // A file that was changed on the disk is not used, and is repaired if the same component is in use.
    std::fs::write(&versions(&cache, "wasm")[0], "changed").unwrap();
    let policies = restart(version("panic")).await;
    assert!(policies.loaded()[0].last_good.is_none());
    assert!(answer(&policies).await.is_err());
    assert!(restart(version("panic")).await.loaded()[0].last_good.is_some());
    // Without the operator's setting, nothing is used, and nothing stays.
    assert!(restart(hostile("panic")).await.loaded()[0].last_good.is_none());
    assert_eq!(cache.join("versions").read_dir().unwrap().count(), 0);
}

/// A registry may be away, or a file be damaged, when the service starts.
#[tokio::test]
async fn the_version_before_stands_in_for_one_that_cannot_be_loaded_at_the_start() {
    let (state, options) = alone();
    let start = async |policy: PolicySpec| Policies::load(vec![policy], options.clone()).await;
    start(version("data")).await.unwrap();
    let file = state.path().join("policy.wasm");
    let from_file = |name, on_failure| {
        let PolicySpec { config, limits, .. } = version("count");
        PolicySpec { on_failure, config, limits, ..PolicySpec::new(name, file.clone()) }
    };
    for (contents, problem) in [(None, "policy.wasm"), (Some("damaged"), "is not WebAssembly")] {
        if let Some(contents) = contents {
            std::fs::write(&file, contents).unwrap();
        }
        let policies = start(from_file("evil", OnFailure::LastGood)).await.unwrap();
        assert_eq!(answer(&policies).await.unwrap().unwrap(), "None None", "{contents:?}");
        assert!(policies.problem().unwrap().contains(problem), "{:?}", policies.problem());
        assert!(policies.loaded()[0].last_error.as_ref().unwrap().contains("stands in"));
        // Another attempt that fails changes nothing.
        policies.reload().await.unwrap();
        assert!(policies.problem().is_some());
        assert_eq!(answer(&policies).await.unwrap().unwrap(), "None None", "{contents:?}");
    }
    let policies = start(from_file("evil", OnFailure::LastGood)).await.unwrap();
    std::fs::copy(guests::component("guest-hostile"), &file).unwrap();
    policies.reload().await.unwrap();
    assert_eq!(policies.problem(), None);
    assert_eq!(answer(&policies).await.unwrap().unwrap(), "/prepared/1/called/0");

    // Nothing stands in for a policy whose operator does not want that, nor for one that nobody has loaded before.
    std::fs::remove_file(&file).unwrap();
    assert!(start(from_file("evil", OnFailure::Deny)).await.is_err());
    assert!(start(from_file("other", OnFailure::LastGood)).await.is_err());
}

/// Another of the policies may be the one that denies.
#[tokio::test]
async fn no_question_is_answered_while_a_policy_is_missing() {
    let (state, options) = alone();
    let file = state.path().join("door.wasm");
    let door = PolicySpec { config: json!({"deny": ["guests"]}), ..PolicySpec::new("door", file.clone()) };
    let (policies, failed) = Policies::open(vec![site(), door], options).await.unwrap();
    assert!(failed.unwrap().to_string().contains("door.wasm"));
    assert!(policies.missing().is_some() && policies.loaded().is_empty());
    let guest = spawn_request(user("eve", &["guests"]));
    let error = policies.authorize(&guest).await.unwrap_err();
    assert_eq!((error.policy.as_str(), error.kind.name()), ("door", "not_loaded"));
    let context = FormContext::default();
    assert!(policies.render_form(&context).await.is_err());
    assert!(policies.parse_submission(&Options::new(), &context).await.is_err());
    assert!(policies.image_menu(&context).await.is_err());
    assert!(policies.prepull().await.is_err());
    assert!(policies.limits(&User::default(), Usage::default(), &Subject::default()).await.is_err());
    assert!(policies.customize(&LabRequest::default()).await.is_err());

    std::fs::copy(guests::component("policy-deny-group"), &file).unwrap();
    // A change is reported when two looks in a row have seen the same file.
    assert!(policies.files_have_changed().await || policies.files_have_changed().await);
    policies.reload().await.unwrap();
    assert!(matches!(policies.authorize(&guest).await.unwrap().last().unwrap().value, Verdict::Deny(_)));
}

#[tokio::test]
async fn what_cannot_be_loaded_today_may_answer_tomorrow() {
    let (state, options) = alone();
    let teams = state.path().join("teams.yaml");
    let with_data = |act: &str| {
        let data = [("teams".to_owned(), DataSource::File(teams.clone()))].into();
        PolicySpec { data, ..version(act) }
    };
    let restart = async |policy| Policies::load(vec![policy], options.clone()).await.unwrap();
    std::fs::write(&teams, "{ada: core}").unwrap();
    restart(with_data("data")).await;
    std::fs::remove_file(&teams).unwrap();
    let policies = restart(version("panic")).await;
    assert!(policies.loaded()[0].last_good.is_none(), "its data is away");
    policies.reload().await.unwrap();
    std::fs::write(&teams, "{ada: core}").unwrap();
    assert!(answer(&restart(version("panic")).await).await.unwrap().unwrap().contains("core"));
}

#[tokio::test]
async fn a_version_that_has_failed_is_no_good_one_after_a_restart() {
    let (state, options) = alone();
    let cache = state.path().join("cache");
    let restart = async |act| Policies::load(vec![version(act)], options.clone()).await.unwrap();
    let good = Some("None None".to_owned());
    restart("data").await;
    answer(&restart("panic").await).await.unwrap();
    noted(&cache).await;
    // The version is replaced before it can fail once more.
    let policies = restart("panic").await;
    policies.reload().await.unwrap();
    policies.replace(vec![version("huge")]).await.unwrap();
    assert_eq!(answer(&policies).await.unwrap(), good);
}

fn versions(cache: &std::path::Path, extension: &str) -> Vec<std::path::PathBuf> {
    let files = cache.join("versions").read_dir().unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|found| found == extension)).collect()
}

/// Waits until the failure of the version is recorded.
async fn noted(cache: &std::path::Path) {
    let noted = || {
        let kept: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&versions(cache, "json")[0]).unwrap()).unwrap();
        kept["failed"] == json!(true)
    };
    let mut again = tokio::time::interval(Duration::from_millis(10));
    let waiting = async {
        while !noted() {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap();
}

#[tokio::test]
async fn the_present_grants_hold_for_the_version_before() {
    let with_grants = |act: &str, raw_html: bool| {
        let mut policy = version(act);
        policy.grants.raw_html = raw_html;
        policy
    };
    let (_state, options) = alone();
    let policies = Policies::load(vec![with_grants("data", true)], options).await.unwrap();
    policies.replace(vec![with_grants("panic", false)]).await.unwrap();
    let answers = policies.customize(&LabRequest::default()).await.unwrap();
    assert_eq!(answers[0].customization.working_dir.as_deref(), Some("None None"));
    assert!(!answers[0].grants.raw_html);
}

/// The previous version allows nothing by a hook that it never had.
#[tokio::test]
async fn a_version_before_without_the_hook_does_not_answer() {
    let (_state, options) = alone();
    let door = spec("evil", "policy-deny-group", json!({ "deny": ["guests"] }));
    let door = PolicySpec { on_failure: OnFailure::LastGood, ..door };
    let policies = Policies::load(vec![door], options).await.unwrap();
    policies.replace(vec![version("panic")]).await.unwrap();
    assert!(policies.loaded()[0].last_good.is_some());
    assert!(matches!(answer(&policies).await, Err(CallErrorKind::Trap(_))));
    assert_eq!(policies.loaded()[0].last_good.as_ref().unwrap().answers, 0);
}

/// A version that works does not count as failed because it could not be loaded with other limits.
#[tokio::test]
async fn what_is_only_tried_does_not_fail_for_users() {
    let (state, options) = alone();
    let cache = state.path().join("cache");
    let policies = Policies::load(vec![version("count")], options).await.unwrap();
    let mut starved = version("count");
    starved.limits.memory_bytes = 64 << 10;
    policies.replace(vec![starved]).await.unwrap_err();
    policies.replace(vec![version("panic")]).await.unwrap();
    assert!(answer(&policies).await.unwrap().unwrap().ends_with("/called/0"), "it is the good one");
    noted(&cache).await;
}

/// Answers are compared once, whichever version gives them.
#[tokio::test]
async fn a_candidate_is_asked_once_where_the_version_before_answers() {
    let (_state, options) = alone();
    let policies = Policies::load(vec![version("data")], options).await.unwrap();
    let candidate = Some(Box::new(PolicySpec { name: "evil (candidate)".into(), ..hostile("data") }));
    policies.replace(vec![PolicySpec { candidate, ..version("panic") }]).await.unwrap();
    answer(&policies).await.unwrap();
    // Two comparisons are those of `lab-server` and `lab-files`, hooks that neither has.
    let told = candidates::report(&policies, 3).await;
    assert_eq!((told.same, told.different), (3, 0));
}

/// With this, a lab's history can name the version that made it.
#[tokio::test]
async fn an_answer_names_the_component_that_has_given_it() {
    let (_state, options) = alone();
    let before = PolicySpec { name: "evil".into(), on_failure: OnFailure::LastGood, ..site() };
    let policies = Policies::load(vec![before], options).await.unwrap();
    let good = policies.loaded()[0].digest;
    let lab = LabRequest { user: user("ada", &["science"]), ..LabRequest::default() };
    policies.replace(vec![version("panic")]).await.unwrap();
    let answers = policies.customize(&lab).await.unwrap();
    assert_eq!(answers[0].component, Some(good));
    assert_ne!(policies.loaded()[0].digest, good);
}
