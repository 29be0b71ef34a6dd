//! `on_failure: last-good`: where a policy fails, the version that was in use before answers.

use super::*;

fn version(act: &str) -> PolicySpec {
    PolicySpec { on_failure: OnFailure::LastGood, ..hostile(act) }
}

async fn answer(policies: &Policies) -> Result<Option<String>, CallErrorKind> {
    let answers = policies.customize(&LabRequest::default()).await;
    answers.map(|answers| answers[0].customization.working_dir.clone()).map_err(|error| error.kind)
}

#[tokio::test]
async fn the_version_before_answers_where_a_policy_fails() {
    let policies = load(vec![version("data")]).await;
    assert!(policies.loaded()[0].last_good.is_none());
    policies.replace(vec![version("panic")]).await.unwrap();
    let good = Some("None None".to_owned());
    assert_eq!(answer(&policies).await.unwrap(), good);
    let loaded = policies.loaded().remove(0);
    assert!(loaded.last_error.unwrap().contains("as asked"), "the failure is told all the same");
    assert_eq!(loaded.last_good.as_ref().unwrap().answers, 1);

    // Another version that fails does not take the place of the good one, and neither does a reload of the same.
    policies.replace(vec![version("huge")]).await.unwrap();
    policies.reload().await.unwrap();
    assert_eq!(answer(&policies).await.unwrap(), good);

    // What a policy says is no failure.
    policies.replace(vec![version("denied")]).await.unwrap();
    assert!(matches!(answer(&policies).await, Err(CallErrorKind::Denied(_))));
    policies.replace(vec![version("count")]).await.unwrap();
    assert_eq!(answer(&policies).await.unwrap().unwrap(), "/prepared/1/called/0");

    // Where the operator does not want it, the request fails.
    policies.replace(vec![hostile("panic")]).await.unwrap();
    assert!(answer(&policies).await.is_err());
    assert!(policies.loaded()[0].last_good.is_none());
}

/// A changed configuration often restarts the service.
#[tokio::test]
async fn the_version_before_answers_after_a_restart_too() {
    let state = tempfile::tempdir().unwrap();
    let cache = state.path().join("cache");
    let restart = async |policy: PolicySpec| {
        let options = EngineOptions { cache: Some(cache.clone()), ..options() };
        Policies::load(vec![policy], options).await.unwrap()
    };
    let good = Some("None None".to_owned());
    assert!(restart(version("data")).await.loaded()[0].last_good.is_none());
    for act in ["panic", "panic", "huge", "huge"] {
        let policies = restart(version(act)).await;
        assert_eq!(answer(&policies).await.unwrap(), good, "{act}");
        assert_eq!(policies.loaded()[0].last_good.as_ref().unwrap().answers, 1);
        noted(&cache).await;
    }
    // A version that works takes the place of the good one, and components are kept as long as they may be needed.
    let policies = restart(version("count")).await;
    assert_eq!(answer(&policies).await.unwrap().unwrap(), "/prepared/1/called/0");
    let policies = restart(version("panic")).await;
    assert_eq!(answer(&policies).await.unwrap().unwrap(), "/prepared/1/called/0");
    assert_eq!(versions(&cache, "wasm").len(), 1, "all are one component");
    noted(&cache).await;

    // What somebody has changed on the disk is not used.
    std::fs::write(&versions(&cache, "wasm")[0], "changed").unwrap();
    let policies = restart(version("panic")).await;
    assert!(policies.loaded()[0].last_good.is_none());
    assert!(answer(&policies).await.is_err());
    // Where the operator does not want it, nothing is kept or used.
    assert!(restart(hostile("panic")).await.loaded()[0].last_good.is_none());
}

fn versions(cache: &std::path::Path, extension: &str) -> Vec<std::path::PathBuf> {
    let files = cache.join("versions").read_dir().unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|found| found == extension)).collect()
}

/// Waits until it is noted that the version has failed.
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
    let policies = load(vec![with_grants("data", true)]).await;
    policies.replace(vec![with_grants("panic", false)]).await.unwrap();
    let answers = policies.customize(&LabRequest::default()).await.unwrap();
    assert_eq!(answers[0].customization.working_dir.as_deref(), Some("None None"));
    assert!(!answers[0].grants.raw_html);
}
