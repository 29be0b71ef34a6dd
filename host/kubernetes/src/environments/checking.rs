//! Checks whether labs can run in the targets that the service did not make itself.

use jiff::Timestamp;
use wasmspawner_core::custom_resource::environment::{
    KubernetesCredentials, Target, TargetCheck, TargetDefect,
};
use wasmspawner_core::names::ObjectName;

use super::Environments;
use super::outcome::ActionOutcome;
use crate::clusters::CredentialsProblem;
use crate::k8s::{Causes, KubernetesError, StatusReason};

impl Environments {
    /// Checks a target, and writes down the result for the next decision.
    pub(super) async fn check(&self, target: &Target) -> ActionOutcome {
        let Some(credentials) = &target.spec.kubernetes_credentials else { return ActionOutcome::Yes };
        let defect = self.defect(target, credentials).await;
        let known = self.seen.with(|world| world.checks.get(target.uid()).cloned());
        let known = known.filter(|known| known.credentials == *credentials);
        // A cluster that was well and does not answer now is no news about the target: labs wait for it as they do
        // elsewhere, and it is reported by itself.
        let was_usable = known.as_ref().is_some_and(|known| known.defect.is_none());
        let defect = defect.filter(|defect| defect.is_final() || !was_usable);
        let known = known.and_then(|known| known.defect).map(|known| known.to_string());
        match &defect {
            Some(defect) if known.as_deref() != Some(defect.to_string().as_str()) => {
                tracing::warn!(
                    target = target.name(),
                    reason = defect.reason(),
                    "no lab can run in a target: {defect}"
                );
            }
            None if known.is_some() => {
                tracing::info!(target = target.name(), "labs can run in a target again");
            }
            _ => {}
        }
        let check = TargetCheck { credentials: credentials.clone(), at: Timestamp::now(), defect };
        self.seen.put_check(target, check);
        ActionOutcome::Yes
    }

    async fn defect(&self, target: &Target, credentials: &KubernetesCredentials) -> Option<TargetDefect> {
        let reference = target.cluster();
        if let Some(reference) = &reference
            && let Err(problem) = self.clusters.credentials(reference).await
        {
            let secret = reference.secret.clone();
            return Some(match problem {
                CredentialsProblem::NotFound => TargetDefect::SecretNotFound(secret),
                CredentialsProblem::Invalid(problem) => TargetDefect::InvalidCredentials { secret, problem },
                CredentialsProblem::Unreadable(problem) => TargetDefect::Unavailable(problem),
            });
        }
        let namespace = &credentials.default_namespace;
        let permissions = self.clusters.get(reference.as_ref()).permissions;
        let found = async {
            if !permissions.namespace_exists(namespace).await? {
                return Ok(Some(TargetDefect::NamespaceNotFound(namespace.clone())));
            }
            let missing = permissions.missing(namespace).await?;
            let namespace = namespace.clone();
            Ok((!missing.is_empty()).then_some(TargetDefect::MissingPermissions { namespace, missing }))
        };
        found
            .await
            .unwrap_or_else(|error| Some(defect_of(&error, reference.map(|reference| reference.secret))))
    }
}

/// Returns the defect that makes the requests of a check fail.
fn defect_of(error: &KubernetesError, secret: Option<ObjectName>) -> TargetDefect {
    match (error, secret) {
        (KubernetesError::Refused { reason: StatusReason::Unauthorized, .. }, Some(secret)) => {
            TargetDefect::Unauthorized(secret)
        }
        (error, _) => TargetDefect::Unavailable(Causes(error).to_string()),
    }
}
