//! The permissions of users, and the source of each denial.

use wasmspawner_core::policy::compose::Source;
use wasmspawner_core::policy::{AuthorizeRequest, Denial, Subject, User, Verdict};
use wasmspawner_core::users::quota::{Quota, Usage};

use crate::context::site_rules::SiteRules;
use crate::errors::SpawnError;
use crate::errors::denied_by::DeniedBy;
use wasmspawner_policies::PolicyAnswer;

/// Asks the policies whether the user may do something.
pub(crate) async fn authorize(rules: &SiteRules<'_>, question: &AuthorizeRequest) -> Result<(), SpawnError> {
    let answers = rules.policies.authorize(question).await?;
    for PolicyAnswer { policy, hook, value } in answers {
        if let Verdict::Deny(Denial { message, rule }) = value {
            let (user, action) = (&question.user.name, question.action);
            tracing::info!(user, ?action, %policy, rule, message, "a policy does not allow it");
            return Err(SpawnError::denied(message, DeniedBy::policy(&policy, hook, rule)));
        }
    }
    Ok(())
}

/// Returns the limits that the policies set. Fails if another lab is not allowed.
pub(crate) async fn limits(
    rules: &SiteRules<'_>,
    user: &User,
    subject: &Subject,
) -> Result<Vec<(Source, Quota)>, SpawnError> {
    let usage = Usage { labs: subject.use_of_user.labs };
    let answers = rules.policies.limits(user, usage, subject).await?;
    let of_site = Quota { labs: Some(rules.config.limits.per_user.labs.get()), ..Quota::default() };
    let of_policies =
        answers.iter().map(|answer| (DeniedBy::policy(&answer.policy, answer.hook, None), &answer.value));
    let of_site = (DeniedBy::configuration("limits.per_user.labs"), &of_site);
    for (by, quota) in of_policies.chain([of_site]) {
        let allowed = quota.allows_another_lab(usage);
        allowed.map_err(|refusal| SpawnError::denied(refusal.to_string(), by))?;
    }
    Ok(quotas(answers))
}

/// Returns the quotas with the policies that have set them.
pub(crate) fn quotas(answers: Vec<PolicyAnswer<Quota>>) -> Vec<(Source, Quota)> {
    answers.into_iter().map(|answer| (Source::Policy(answer.policy.to_string()), answer.value)).collect()
}

/// Makes the error for a user to whom the identity provider does not allow anything.
pub(crate) fn forbidden(refusal: impl std::error::Error) -> SpawnError {
    SpawnError::denied(refusal.to_string(), DeniedBy::identity_provider())
}
