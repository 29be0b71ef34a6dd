//! The answer about environments.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::custom_resource::environment::{self, ClaimView, EnvironmentView, TargetView};

/// All environments, claims and targets, each sorted by name.
#[expect(clippy::struct_field_names, reason = "the field names are those of the API")]
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Environments {
    /// The environments that people name.
    environments: Vec<Environment>,
    /// The claims, those of labs among them.
    claims: Vec<Claim>,
    /// The targets.
    targets: Vec<Target>,
}

/// An environment: a named place for labs.
#[derive(Debug, Serialize, ToSchema)]
struct Environment {
    /// Its name.
    name: String,
    /// The name that people read.
    display_name: String,
    /// Its claim.
    claim: String,
    /// `bound`, or `unbound` while its claim has no target.
    #[schema(value_type = Option<String>)]
    phase: Option<environment::EnvironmentPhase>,
    /// The problem of its claim, for people.
    problem: Option<String>,
}

/// A claim: somebody wants a target.
#[derive(Debug, Serialize, ToSchema)]
struct Claim {
    /// Its name.
    name: String,
    /// The class that it asks for.
    class: Option<String>,
    /// The target that it has, or wants.
    target: Option<String>,
    /// Whose it is: `USER` or `USER/SERVER`.
    owner: Option<String>,
    /// `Pending`, `Bound` or `Lost`.
    #[schema(value_type = Option<String>)]
    phase: Option<environment::ClaimPhase>,
    /// What is wrong, for people.
    problem: Option<String>,
}

/// A target: a namespace, in this cluster or in another.
#[derive(Debug, Serialize, ToSchema)]
struct Target {
    /// Its name.
    name: String,
    /// Its class.
    class: Option<String>,
    /// Its namespace.
    namespace: Option<String>,
    /// The Secret with which its cluster is reached; null for the service's own.
    cluster: Option<String>,
    /// The claim that has it, or is to have it.
    claim: Option<String>,
    /// Whose it is, or was when it was released: `USER` or `USER/SERVER`.
    owner: Option<String>,
    /// `Pending`, `Available`, `Bound`, `Released` or `Failed`.
    #[schema(value_type = Option<String>)]
    phase: Option<environment::TargetPhase>,
    /// True while it is being removed.
    deleting: bool,
    /// What is wrong, for people.
    problem: Option<String>,
}

impl From<environment::Overview> for Environments {
    fn from(overview: environment::Overview) -> Self {
        Self {
            environments: overview.environments.into_iter().map(Environment::from).collect(),
            claims: overview.claims.into_iter().map(Claim::from).collect(),
            targets: overview.targets.into_iter().map(Target::from).collect(),
        }
    }
}

impl From<EnvironmentView> for Environment {
    fn from(EnvironmentView { name, display_name, claim, phase, problem }: EnvironmentView) -> Self {
        Self { name, display_name, claim, phase, problem }
    }
}

impl From<ClaimView> for Claim {
    fn from(ClaimView { name, class, target, owner, phase, problem }: ClaimView) -> Self {
        Self { name, class, target, owner, phase, problem }
    }
}

impl From<TargetView> for Target {
    fn from(view: TargetView) -> Self {
        let TargetView { name, class, namespace, cluster, claim, owner, phase, deleting, problem } = view;
        Self { name, class, namespace, cluster, claim, owner, phase, deleting, problem }
    }
}
