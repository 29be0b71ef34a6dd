use wasmspawner_core::custom_resource::environment::TargetFailure;

use crate::k8s::KubernetesError;

/// The outcome of an action.
pub(super) enum ActionOutcome {
    /// The action was done.
    Yes,
    /// Something has changed that the watches have not shown yet, or will show soon.
    NotYet,
    /// The namespace of the target with this uid is gone.
    Gone(String),
    /// The objects of the target with this uid could not be made or removed.
    TargetFailed(String, TargetFailure),
    /// Another action failed.
    Failed(KubernetesError),
}
