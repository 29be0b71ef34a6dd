//! Policies that behave while they are loaded, but not after that.

use super::*;

async fn form(policies: &Policies) -> Result<PolicyName, CallError> {
    let answer = policies.render_form(&FormContext::default()).await?;
    Ok(answer.unwrap().policy)
}

#[tokio::test]
async fn each_call_has_the_limits_that_the_trial_had() {
    for (act, deadline_ms, kind) in [
        ("loop-after-trial", SHORT, "deadline"),
        ("memory-after-trial", AMPLE, "memory"),
        ("panic-after-trial", AMPLE, "trap"),
    ] {
        let policies = load(vec![within(deadline_ms, hostile(act))]).await;
        let error = failed(|| form(&policies)).await;
        assert_eq!((error.policy.as_str(), error.kind.name()), ("evil", kind));
        assert_eq!(error.kind.blame(), CallBlame::Policy);
        // The chain still works for others, and the next version of the policy is loaded as usual.
        policies.replace(vec![hostile("")]).await.unwrap();
        assert_eq!(form(&policies).await.unwrap().as_str(), "evil");
    }
}

/// A trial cannot find out how a policy behaves for real users. The previous version can answer instead of it.
#[tokio::test]
async fn the_version_before_answers_for_one_that_behaved_only_while_it_was_tried() {
    let version = |act| PolicySpec { on_failure: OnFailure::LastGood, ..hostile(act) };
    let (_state, options) = last_good::alone();
    let policies = Policies::load(vec![version("")], options).await.unwrap();
    policies.replace(vec![version("panic-after-trial")]).await.unwrap();
    assert_eq!(form(&policies).await.unwrap().as_str(), "evil");
    let loaded = policies.loaded().remove(0);
    assert!(loaded.last_error.unwrap().contains("as asked"));
    assert_eq!(loaded.last_good.unwrap().answers, 1);
}
