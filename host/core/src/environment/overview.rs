//! What administrators see of environments.

use super::{ClaimPhase, EnvironmentPhase, OWNER, TargetPhase, World};
use crate::custom_resource::Object;

/// All environments, claims and targets, each sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// The environments that people name.
    pub environments: Vec<EnvironmentView>,
    /// The claims.
    pub claims: Vec<ClaimView>,
    /// The targets.
    pub targets: Vec<TargetView>,
}

/// An environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentView {
    /// Its name.
    pub name: String,
    /// The name that people read.
    pub display_name: String,
    /// Its claim.
    pub claim: String,
    /// Whether labs can run in it.
    pub phase: Option<EnvironmentPhase>,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimView {
    /// Its name.
    pub name: String,
    /// The class that it asks for.
    pub class: Option<String>,
    /// The target that it has, or wants.
    pub target: Option<String>,
    /// Whose it is: `USER` or `USER/SERVER`.
    pub owner: Option<String>,
    /// Where in its life it is.
    pub phase: Option<ClaimPhase>,
    /// What is wrong, in words.
    pub problem: Option<String>,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetView {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: Option<String>,
    /// Its namespace.
    pub namespace: Option<String>,
    /// The Secret with which its cluster is reached; `None` for the service's own.
    pub cluster: Option<String>,
    /// The claim that has it, or is to have it.
    pub claim: Option<String>,
    /// Whose it is, or was when it was released.
    pub owner: Option<String>,
    /// Where in its life it is.
    pub phase: Option<TargetPhase>,
    /// True while it is being removed.
    pub deleting: bool,
    /// What is wrong, in words.
    pub problem: Option<String>,
}

/// How many claims and targets there are in each phase, zeros included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseCounts {
    /// The claims.
    pub claims: [(ClaimPhase, usize); 3],
    /// The targets.
    pub targets: [(TargetPhase, usize); 5],
}

impl World {
    /// What administrators see.
    pub fn overview(&self) -> Overview {
        fn owner<S, T>(object: &Object<S, T>) -> Option<String> {
            object.annotation(OWNER).map(str::to_owned)
        }
        let text = |name: &Option<crate::names::ObjectName>| name.as_ref().map(ToString::to_string);
        let problem = |found: Option<&crate::condition::Condition>| found.map(|found| found.message.clone());
        let environments = self.environments.values().map(|environment| EnvironmentView {
            name: environment.name().to_owned(),
            display_name: environment.spec.display_name.clone(),
            claim: environment.claim_name().to_string(),
            phase: environment.status.phase,
        });
        let claims = self.claims.values().map(|claim| ClaimView {
            name: claim.name().to_owned(),
            class: text(&claim.spec.deployment_target_class_name),
            target: text(&claim.spec.target_name),
            owner: owner(claim),
            phase: claim.status.phase,
            problem: problem(claim.problem()),
        });
        let targets = self.targets.values().map(|target| TargetView {
            name: target.name().to_owned(),
            class: text(&target.spec.deployment_target_class_name),
            namespace: target.namespace().map(str::to_owned),
            cluster: target.cluster().map(|cluster| cluster.secret.to_string()),
            claim: target.spec.claim_ref.as_ref().map(|claim| claim.name.to_string()),
            owner: owner(target),
            phase: target.status.phase,
            deleting: target.is_deleting(),
            problem: problem(target.problem()),
        });
        Overview {
            environments: environments.collect(),
            claims: claims.collect(),
            targets: targets.collect(),
        }
    }

    /// How many claims and targets there are in each phase, zeros included.
    pub fn count(&self) -> PhaseCounts {
        let claims = ClaimPhase::ALL.map(|phase| {
            (phase, self.claims.values().filter(|claim| claim.status.phase == Some(phase)).count())
        });
        let targets = TargetPhase::ALL.map(|phase| {
            (phase, self.targets.values().filter(|target| target.status.phase == Some(phase)).count())
        });
        PhaseCounts { claims, targets }
    }
}
