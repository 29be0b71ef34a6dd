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
