//! Environments: the places where labs run. A claim requests a target of a class; a target is a namespace with
//! credentials, in this cluster or in another.
//!
//! The four kinds are custom resources of the group `wasmspawner.io`. Claims, targets and environments are in the
//! service's own namespace, where only the service and the site's administrators may write. [`reconcile`] decides on
//! all of them at once: the binder joins claims and targets, and the provisioner makes and removes namespaces.

mod binding;
mod check;
mod claim;
mod class;
mod definition;
mod named;
mod overview;
mod provision;
mod reconcile;
mod target;

pub use binding::{Binding, ClaimState, NamespaceFate};
pub use check::{TargetCheck, TargetDefect};
pub use claim::{Claim, ClaimPhase, ClaimSpec, ClaimStatus, TargetSelector};
pub use class::{Class, ClassSpec, Parameters, ReclaimPolicy};
pub use definition::definitions;
pub use named::{
    ClaimReference, Configuration, DeploymentStrategy, Environment, EnvironmentPhase, EnvironmentSpec,
    EnvironmentStatus, EnvironmentTarget,
};
pub use overview::{ClaimView, EnvironmentView, Overview, PhaseCounts, TargetView};
pub use provision::{
    Account, CREDENTIALS_KEY, Credentials, ProvisionedObjects, missing_permissions, provisioned_objects,
};
pub use reconcile::{Action, NamespaceState, Reconciled, TargetFailure, Usability, World, reconcile};
pub use target::{
    ClaimRef, ClusterRef, KubernetesCredentials, Target, TargetPhase, TargetSpec, TargetStatus,
};

/// The name of the provisioner that makes namespaces, which is built into the service.
pub const NAMESPACE_PROVISIONER: &str = "wasmspawner.io/namespace";

/// Annotation of a claim: the claim was bound before, so a missing target counts as lost.
pub const BIND_COMPLETE: &str = "wasmspawner.io/bind-complete";
/// Annotation of a claim: the binder has chosen the target, not the claim's owner.
pub const BOUND_BY_CONTROLLER: &str = "wasmspawner.io/bound-by-controller";
/// Annotation of a claim: the provisioner that is to make a target for it.
pub const DT_PROVISIONER: &str = "wasmspawner.io/dt-provisioner";
/// Annotation of a target: the provisioner that made it.
pub const PROVISIONED_BY: &str = "wasmspawner.io/provisioned-by";
/// Annotation of a claim, and of a target that is or was bound to it: the owner, as `USER` or `USER/SERVER`. A released
/// target goes to the same owner again.
pub const OWNER: &str = "wasmspawner.io/owner";
/// Annotation of a claim, and of the target made for it: the requested name of the namespace.
pub const NAMESPACE: &str = "wasmspawner.io/namespace";
/// Annotation of a target: the Secret with a kubeconfig of the other cluster in which the built-in provisioner made it.
pub const CLUSTER: &str = "wasmspawner.io/cluster";
/// Label of a target that was released and has not been given to another owner. Without the label, any claim may take
/// the target.
pub const RELEASED: &str = "wasmspawner.io/released";
/// Annotation of a target that was made for the pool of its class and that has never been bound to a claim.
pub const IN_POOL: &str = "wasmspawner.io/in-pool";
/// Label of a namespace, and of the objects that the provisioner makes in it: the uid of the target.
pub const TARGET_LABEL: &str = "wasmspawner.io/target";
/// The finalizer of claims and targets.
pub const FINALIZER: &str = "wasmspawner.io/environment";
