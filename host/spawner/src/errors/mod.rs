//! The errors of the spawner, with the reasons why it refuses a request.

pub(crate) mod denied_by;

use wasmspawner_core::lifecycle::{Blame, Failure, LabStatus, Refusal};
use wasmspawner_core::names::NameError;
use wasmspawner_core::policy::{Denial, FieldError};

use self::denied_by::DeniedBy;
use wasmspawner_kubernetes::k8s::{Causes, KubernetesError};
use wasmspawner_policies::{CallBlame, CallError, CallErrorKind};

/// The reason why a spawn, a stop or a form is refused.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The state of the lab or of the service does not allow the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A policy, or the user's quota, does not allow the request. The message is for the user.
    #[error("{message}")]
    Denied {
        /// The message of the policy or of the quota.
        message: String,
        /// The source of the denial.
        by: Box<DeniedBy>,
    },
    /// The options of the spawn are invalid.
    #[error("the options are invalid")]
    Invalid(Vec<FieldError>),
    /// The site does not have what the user string asks for.
    #[error("{0}")]
    NotOffered(&'static str),
    /// A lab cannot be put into the workload that was asked for.
    #[error("{message}")]
    Workload {
        /// The reason.
        message: String,
    },
    /// The lab is in a workload, where it has no pods of its own.
    #[error("a lab in a workload starts no kernels with pods of their own and no Dask pools")]
    NoChildrenInWorkloads,
    /// The requested pool is not possible.
    #[error("{message}")]
    InvalidPool {
        /// The field of the request.
        field: &'static str,
        /// The reason, and what is possible instead.
        message: String,
    },
    /// The names of the user and the server give no valid names of Kubernetes objects.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A policy asks to try again later.
    #[error("try again in {0} s")]
    RetryLater(u32),
    /// A policy failed, and the fault is its own.
    #[error("the policy `{policy}` of this site failed")]
    PolicyFailed {
        /// The policy's name in the configuration.
        policy: String,
        /// The reason, for programs, in `CamelCase`.
        reason: &'static str,
    },
    /// A policy could not be asked. This is not its fault: too much is asked at once.
    #[error("the policy `{policy}` of this site cannot be asked now; try again in a moment")]
    PolicyUnavailable {
        /// The policy's name in the configuration.
        policy: String,
        /// The reason, for programs, in `CamelCase`.
        reason: &'static str,
    },
    /// A request to the cluster failed.
    #[error("{}", .0.message)]
    Cluster(Failure),
    /// The Kubernetes API counts as away, so no request was tried.
    #[error("the cluster cannot be reached; try again in a moment")]
    ClusterAway,
    /// Earlier requests took all the time that was left for this one.
    #[error(
        "earlier requests for this lab or user are not answered yet, because the cluster is slow or away; try again in a moment"
    )]
    NoTime,
    /// The record belongs to another lab, or others change it faster than it can be written.
    #[error(
        "the record of this lab cannot be written; its administrators find the reason in the service's log"
    )]
    RecordTaken,
    /// Somebody has deleted the lab's record.
    #[error("the record of this lab does not exist any more")]
    RecordGone,
    /// The cluster does not keep all that the record of the lab would have to say. The service's log has the remedy.
    #[error(
        "the cluster is not prepared for this version of the service, so no lab can be started; its administrators \
         find the reason in the service's log"
    )]
    RecordIncomplete,
    /// The lab may run, and its record cannot be read.
    #[error(
        "the record {name} of this lab cannot be read by this version of the service, so nothing can be done with the lab; \
         the site's administrators find the reason in the service's log"
    )]
    UnreadableRecord {
        /// The record's name.
        name: String,
    },
    /// Nothing is deleted that may be of labs whose records cannot be read.
    #[error(
        "{0} records of labs cannot be read by this version of the service, so what is left of a lab cannot be told from \
         what one uses; correct these records first: the service's log names them"
    )]
    UnreadableRecords(usize),
    /// There is no lab that could start a child.
    #[error("there is no lab of this name; start it first")]
    NoLab,
    /// The lab is starting, is stopping or has failed, so it cannot start a child.
    #[error("the lab is not running; what it starts needs a running lab")]
    LabNotRunning,
    /// The operator has not configured how labs reach the service.
    #[error(
        "this site starts no kernels and no Dask pools: labs do not know where the service is (`http.labs_url` is not set)"
    )]
    NoChildren,
    /// This process does not know which labs there are.
    #[error(
        "this process does not know which labs there are: it has just started, or another one leads; try again in a moment"
    )]
    NotReady,
}

impl From<CallError> for SpawnError {
    fn from(error: CallError) -> Self {
        match error.kind {
            CallErrorKind::Denied(Denial { message, rule }) => {
                Self::denied(message, DeniedBy::policy(&error.policy, error.hook, rule))
            }
            CallErrorKind::Invalid(errors) => Self::Invalid(errors),
            CallErrorKind::RetryLater(seconds) => Self::RetryLater(seconds),
            ref kind if kind.blame() == CallBlame::Host => {
                tracing::error!(policy = %error.policy, hook = %error.hook, %kind, "a policy cannot be asked");
                Self::PolicyUnavailable { reason: reason(kind), policy: error.policy.to_string() }
            }
            ref kind => {
                tracing::error!(policy = %error.policy, hook = %error.hook, %kind, "a policy failed");
                Self::PolicyFailed { reason: reason(kind), policy: error.policy.to_string() }
            }
        }
    }
}

impl From<KubernetesError> for SpawnError {
    fn from(error: KubernetesError) -> Self {
        Self::Cluster(failure(&error))
    }
}

impl SpawnError {
    /// Names the part of a pool whose options are invalid.
    pub(crate) fn about_part(self, part: &str) -> Self {
        match self {
            Self::Invalid(errors) => {
                let named =
                    |error: FieldError| FieldError::new(error.field, format!("{part}: {}", error.message));
                Self::Invalid(errors.into_iter().map(named).collect())
            }
            other => other,
        }
    }

    /// The site does not list the namespace of the workload.
    pub(crate) const NO_WORKLOADS: Self =
        Self::NotOffered("labs cannot be put into the workloads of this namespace on this site");

    /// Makes the error for a request that a policy, or the user's quota, does not allow. The message is for the user.
    pub(crate) fn denied(message: impl Into<String>, by: DeniedBy) -> Self {
        Self::Denied { message: message.into(), by: Box::new(by) }
    }

    /// Converts the error to the failure of a spawn that has already begun.
    pub(crate) fn into_failure(self) -> Failure {
        let message = self.to_string();
        let (reason, blame, message) = match self {
            Self::Cluster(failure) => return failure,
            Self::Denied { .. } => ("PermissionDenied", Blame::User, message),
            Self::Invalid(errors) => (
                "InvalidOptions",
                Blame::User,
                errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            ),
            Self::RetryLater(_) => ("RetryLater", Blame::Policy, message),
            Self::PolicyFailed { reason, .. } => (reason, Blame::Policy, message),
            Self::PolicyUnavailable { reason, .. } => (reason, Blame::Service, message),
            Self::Name(_) => ("InvalidName", Blame::User, message),
            Self::InvalidPool { .. } => ("InvalidPool", Blame::User, message),
            Self::NotOffered(_) => ("NotOffered", Blame::User, message),
            Self::UnreadableRecord { .. } | Self::UnreadableRecords(_) => {
                ("UnreadableRecord", Blame::Service, message)
            }
            Self::Workload { .. } => ("WorkloadRefused", Blame::User, message),
            Self::Refused(_)
            | Self::NotReady
            | Self::NoLab
            | Self::LabNotRunning
            | Self::NoChildren
            | Self::NoChildrenInWorkloads
            | Self::ClusterAway
            | Self::NoTime
            | Self::RecordTaken
            | Self::RecordGone
            | Self::RecordIncomplete => ("Refused", Blame::Service, message),
        };
        Failure::new(reason, message, blame)
    }
}

/// Converts the error of a request that the cluster did not fulfil to a failure of the lab, and logs it.
pub(crate) fn failure(error: &KubernetesError) -> Failure {
    tracing::warn!(error = %Causes(error), "a request to the cluster failed");
    let message = match error {
        KubernetesError::Refused { message, .. } if message.contains("exceeded quota") => {
            let message = format!(
                "Your quota does not allow this; stop something else first, or choose a smaller size ({message})"
            );
            return Failure::new("QuotaExceeded", message, Blame::User);
        }
        KubernetesError::Refused { message, .. } => match missing_account(message) {
            Some((namespace, name)) => {
                let message = format!(
                    "The service account {name} does not exist in the namespace {namespace}; please tell the site's \
                     administrators, who create it (`kubectl -n {namespace} create serviceaccount {name}`) or let the lab have \
                     another one ({message})"
                );
                return Failure::cluster("ServiceAccountNotFound", message);
            }
            None => format!("The cluster refused a part of the lab: {message}"),
        },
        KubernetesError::Unavailable(_) => "The cluster cannot be reached; try again in a moment".to_owned(),
        KubernetesError::StillBeingDeleted { .. } => {
            "A part of an earlier lab is still being deleted; try again in a moment".to_owned()
        }
        KubernetesError::ClaimBeingDeleted { .. } => format!("The lab was not ready in time: {error}"),
        KubernetesError::Taken { kind, name } => {
            format!(
                "The {kind} {name} that this lab would have exists already and belongs to somebody else; please tell the site's administrators"
            )
        }
        KubernetesError::ForeignNamespace { .. } => format!("No lab can be started: {error}"),
        KubernetesError::NoSuchKind { .. } => {
            format!("A part of the lab cannot be created: {error}; please tell the site's administrators")
        }
        KubernetesError::ClaimOfAnother { name, .. } => {
            format!("The volume {name} belongs to another user; please tell the site's administrators")
        }
        KubernetesError::NotFilled { .. } => error.to_string(),
        KubernetesError::Cancelled => "The creation of the lab was cancelled".to_owned(),
        KubernetesError::Unexpected(_) | KubernetesError::Malformed(_) => {
            "The cluster answered with something unexpected".to_owned()
        }
    };
    Failure::cluster(error.reason(), message)
}

/// Namespace and name of the service account that Kubernetes does not find, in the message of its admission plugin
/// `ServiceAccount`.
fn missing_account(message: &str) -> Option<(&str, &str)> {
    let (_, account) = message.split_once("error looking up service account ")?;
    let (account, why) = account.split_once(':')?;
    why.contains("not found").then(|| account.split_once('/'))?
}

fn reason(kind: &CallErrorKind) -> &'static str {
    match kind {
        CallErrorKind::Denied(_) => "PermissionDenied",
        CallErrorKind::Invalid(_) => "InvalidOptions",
        CallErrorKind::RetryLater(_) => "RetryLater",
        CallErrorKind::Guest(_) => "PolicyError",
        CallErrorKind::Trap(_) => "PolicyTrap",
        CallErrorKind::Deadline(_) => "PolicyDeadline",
        CallErrorKind::Memory { .. } => "PolicyMemory",
        CallErrorKind::OutputTooLarge(_) => "PolicyOutputTooLarge",
        CallErrorKind::NotGranted(_) => "PolicyNotGranted",
        CallErrorKind::UnusableForm(_) => "PolicyUnusableForm",
        CallErrorKind::UnusableMenu(_) => "PolicyUnusableMenu",
        CallErrorKind::Incompatible(_) => "PolicyIncompatible",
        CallErrorKind::NotLoaded(_) => "PolicyNotLoaded",
        CallErrorKind::Overloaded(_) | CallErrorKind::NoMemory | CallErrorKind::NoCpu(_) => {
            "PolicyOverloaded"
        }
        CallErrorKind::Engine(_) => "PolicyEngine",
    }
}

/// Returns the refusal that the driver would give, too. It is checked first, so that policies are not asked about
/// spawns that are impossible.
pub(crate) fn refusal(status: LabStatus) -> Option<Refusal> {
    match status {
        LabStatus::Starting => Some(Refusal::SpawnInProgress),
        LabStatus::Running => Some(Refusal::LabExists),
        LabStatus::Terminating => Some(Refusal::StopInProgress),
        LabStatus::Failed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmspawner_policies::Hook;

    #[test]
    fn a_missing_service_account_is_named_with_its_remedy() {
        let refused = |why: &str| KubernetesError::Refused {
            action: "create Pod nb-ada".to_owned(),
            reason: wasmspawner_kubernetes::k8s::StatusReason::Forbidden,
            message: format!(
                "pods \"nb-ada\" is forbidden: error looking up service account jhub/reader: {why}"
            ),
        };
        let missing = failure(&refused("serviceaccount \"reader\" not found"));
        assert_eq!((missing.reason.as_str(), missing.blame), ("ServiceAccountNotFound", Blame::Cluster));
        assert!(
            missing.message.contains("`kubectl -n jhub create serviceaccount reader`"),
            "{}",
            missing.message
        );
        let other = failure(&refused("the server could not answer"));
        assert_eq!(other.reason, "Forbidden", "{}", other.message);
    }

    #[test]
    fn only_a_policy_that_is_to_blame_has_failed() {
        let error = |kind| {
            SpawnError::from(CallError { policy: "site".into(), hook: Hook::new("authorize.decide"), kind })
                .into_failure()
        };
        let blamed = |kind| {
            let failure = error(kind);
            (failure.reason, failure.blame)
        };
        let overloaded = ("PolicyOverloaded".to_owned(), Blame::Service);
        assert_eq!(blamed(CallErrorKind::Overloaded(2000)), overloaded);
        assert_eq!(blamed(CallErrorKind::NoCpu(2000)), overloaded);
        assert_eq!(blamed(CallErrorKind::Engine("x".into())), ("PolicyEngine".to_owned(), Blame::Service));
        assert_eq!(blamed(CallErrorKind::Deadline(200)), ("PolicyDeadline".to_owned(), Blame::Policy));
    }
}
