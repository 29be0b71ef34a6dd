//! The built-in provisioner: makes and removes the objects of targets.

use wasmspawner_core::custom_resource::environment::{
    Class, NAMESPACE, Parameters, Target, TargetFailure, provisioned_objects,
};

use super::Environments;
use super::outcome::ActionOutcome;
use crate::k8s::{Causes, KubernetesError, StatusReason};

impl Environments {
    /// Makes the objects of a target, and writes down how it is reached. The target is read first, because objects that
    /// are made for a target that is being deleted would stay for ever.
    pub(super) async fn provision(&self, target: &Target) -> ActionOutcome {
        let found = match self.targets.get(target.name()).await {
            Ok(found) => found,
            Err(error) => return ActionOutcome::Failed(error),
        };
        let Some(target) = found.filter(|found| found.uid() == target.uid() && !found.is_deleting()) else {
            return ActionOutcome::NotYet;
        };
        match self.make_what_belongs_to(&target).await {
            Ok(()) => {
                self.seen.change(|world| world.failures.remove(target.uid()));
                ActionOutcome::Yes
            }
            Err(failure) => ActionOutcome::TargetFailed(target.uid().to_owned(), failure),
        }
    }

    async fn make_what_belongs_to(&self, target: &Target) -> Result<(), TargetFailure> {
        let class = self.class_of(target)?;
        let parameters = Parameters::parse(&class.spec.parameters).map_err(|problem| {
            wrong(format!("The DeploymentTargetClass {} cannot be used: {problem}", class.name()))
        })?;
        let objects = provisioned_objects(target, &parameters, &self.instance).ok_or_else(|| {
            wrong(format!("The annotation {NAMESPACE} of the target is not the name of a namespace"))
        })?;
        let cluster = self.clusters.get(target.cluster().as_ref());
        let made = cluster.targets.make(&objects, target.uid()).await;
        let credentials = made.map_err(|error| self.failure_to_make(target, error))?;
        let mut secret = None;
        if let Some(credentials) = &credentials
            && let Some(copy) = target.credentials_secret(credentials, &self.instance)
        {
            let own = &self.clusters.own().targets;
            own.put_secret(self.namespace.as_str(), &copy).await.map_err(|error| failure(&error))?;
            secret = target.credentials_secret_name();
        }
        let api_url = credentials.map(|credentials| credentials.api_url);
        let next = target
            .provisioned(api_url, secret)
            .ok_or_else(|| wrong("The target names no namespace".to_owned()))?;
        match self.targets.replace(target, &next).await {
            Ok(Some(written)) => self.seen.put_target(written),
            // Somebody else has changed the target, so it is looked at again.
            Ok(None) => {}
            Err(error) => return Err(failure(&error)),
        }
        Ok(())
    }

    /// Converts an error in the making of the target's objects. A namespace of the previous lab may have been made
    /// after that lab was given up. It is removed in a moment.
    fn failure_to_make(&self, target: &Target, error: KubernetesError) -> TargetFailure {
        match error {
            KubernetesError::Taken { kind: "Namespace", name }
                if self.seen.with(|world| world.is_left_by_another(target)) =>
            {
                failure(&KubernetesError::StillBeingDeleted { action: format!("create Namespace {name}") })
            }
            error => failure_in(target, &error),
        }
    }

    fn class_of(&self, target: &Target) -> Result<Class, TargetFailure> {
        let name = target.spec.deployment_target_class_name.clone();
        let name = name.ok_or_else(|| wrong("The target has no class".to_owned()))?;
        let class = self.seen.with(|world| world.class(name.as_str()).cloned());
        class.ok_or_else(|| wrong(format!("There is no DeploymentTargetClass {name}")))
    }

    /// Removes the objects of a target that is being deleted.
    pub(super) async fn deprovision(&self, target: &Target) -> ActionOutcome {
        let uid = target.uid().to_owned();
        match self.remove_what_belongs_to(target).await {
            Ok(true) => ActionOutcome::Gone(uid),
            Ok(false) => ActionOutcome::NotYet,
            Err(error) => ActionOutcome::TargetFailed(uid, failure_in(target, &error)),
        }
    }

    async fn remove_what_belongs_to(&self, target: &Target) -> Result<bool, KubernetesError> {
        if self.has_accounts() {
            let own = &self.clusters.own().targets;
            own.delete_secrets(self.namespace.as_str(), target.uid()).await?;
        }
        let Some(namespace) = target.annotation(NAMESPACE) else { return Ok(true) };
        let cluster = self.clusters.get(target.cluster().as_ref());
        cluster.targets.delete_namespace(namespace, target.uid()).await
    }

    /// False on the one-machine cluster.
    fn has_accounts(&self) -> bool {
        self.clusters.own().connection.api_url.get().is_some()
    }
}

/// Returns a failure that only people can fix.
fn wrong(message: String) -> TargetFailure {
    TargetFailure { reason: "InvalidTarget".to_owned(), message, is_final: true }
}

/// Returns a failure for an error in the cluster of a target.
fn failure_in(target: &Target, error: &KubernetesError) -> TargetFailure {
    match (error, target.cluster()) {
        (KubernetesError::Unavailable(_), Some(cluster)) => TargetFailure {
            message: format!(
                "The cluster that the Secret {} leads to does not answer, or its credentials cannot be used; the \
                 service's log has more",
                cluster.secret
            ),
            ..failure(error)
        },
        _ => failure(error),
    }
}

fn failure(error: &KubernetesError) -> TargetFailure {
    let is_final = match error {
        KubernetesError::Taken { .. } => true,
        KubernetesError::Refused { reason, .. } => {
            matches!(reason, StatusReason::Forbidden | StatusReason::Invalid)
        }
        _ => false,
    };
    TargetFailure { reason: error.reason().to_owned(), message: Causes(error).to_string(), is_final }
}
