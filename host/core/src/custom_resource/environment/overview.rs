//! The view of environments for administrators.

use super::{ClaimPhase, EnvironmentPhase, OWNER, TargetPhase, World};
use crate::custom_resource::Object;

/// All environments, claims and targets, each sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// The named environments.
    pub environments: Vec<EnvironmentView>,
    /// The claims.
    pub claims: Vec<ClaimView>,
    /// The targets.
    pub targets: Vec<TargetView>,
}

/// An environment in the overview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentView {
    /// The name of the environment.
    pub name: String,
    /// The name that people read.
    pub display_name: String,
    /// The name of the environment's claim.
    pub claim: String,
    /// The phase, which tells whether labs can run in the environment.
    pub phase: Option<EnvironmentPhase>,
    /// The problem in words.
    pub problem: Option<String>,
}

/// A claim in the overview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimView {
    /// The name of the claim.
    pub name: String,
    /// The requested class.
    pub class: Option<String>,
    /// The target that the claim has, or requests.
    pub target: Option<String>,
    /// The owner: `USER` or `USER/SERVER`.
    pub owner: Option<String>,
    /// The phase of the claim's life.
    pub phase: Option<ClaimPhase>,
    /// The problem in words.
    pub problem: Option<String>,
}

/// A target in the overview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetView {
    /// The name of the target.
    pub name: String,
    /// The class of the target.
    pub class: Option<String>,
    /// The target's namespace.
    pub namespace: Option<String>,
    /// The Secret with the credentials for the target's cluster; `None` for the service's own cluster.
    pub cluster: Option<String>,
    /// The claim that has the target, or is to have it.
    pub claim: Option<String>,
    /// The owner, or the former owner of a released target.
    pub owner: Option<String>,
    /// The phase of the target's life.
    pub phase: Option<TargetPhase>,
    /// True while the target is being removed.
    pub deleting: bool,
    /// The problem in words.
    pub problem: Option<String>,
}

/// The number of claims and targets in each phase, zeros included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseCounts {
    /// The number of claims in each phase.
    pub claims: [(ClaimPhase, usize); 3],
    /// The number of targets in each phase.
    pub targets: [(TargetPhase, usize); 5],
}

impl World {
    /// Returns the view for administrators.
    pub fn overview(&self) -> Overview {
        fn owner<S, T>(object: &Object<S, T>) -> Option<String> {
            object.annotation(OWNER).map(str::to_owned)
        }
        let text = |name: &Option<crate::names::ObjectName>| name.as_ref().map(ToString::to_string);
        let problem = |found: Option<&crate::custom_resource::condition::Condition>| {
            found.map(|found| found.message.clone())
        };
        let environments = self.environments.values().map(|environment| EnvironmentView {
            name: environment.name().to_owned(),
            display_name: environment.spec.display_name.clone(),
            claim: environment.claim_name().to_string(),
            phase: environment.status.phase,
            problem: problem(environment.problem()),
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

    /// Counts claims and targets in each phase, zeros included.
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
