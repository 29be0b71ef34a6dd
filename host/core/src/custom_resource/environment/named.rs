//! `Environment`: a named place for labs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::custom_resource::condition::Condition;
use crate::custom_resource::{Kind, Object};
use crate::names::ObjectName;

/// A named place for labs: the target of a claim.
pub type Environment = Object<EnvironmentSpec, EnvironmentStatus>;

/// What an environment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentSpec {
    /// The name that people read.
    pub display_name: String,
    /// The environment before this one, for those who order them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_environment: Option<ObjectName>,
    /// Free words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The way in which others deploy to the environment. The service does not deploy, and only keeps the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_strategy: Option<DeploymentStrategy>,
    /// Where it is.
    pub configuration: Configuration,
}

/// The way in which others deploy to an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeploymentStrategy {
    /// Somebody deploys by hand.
    Manual,
    /// The site's automation deploys.
    AppStudioAutomated,
}

/// Where an environment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// The target.
    pub target: EnvironmentTarget,
}

/// The target of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentTarget {
    /// The claim whose target it is.
    pub deployment_target_claim: ClaimReference,
}

/// Names a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimReference {
    /// The claim's name.
    pub claim_name: ObjectName,
}

/// The state of an environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentStatus {
    /// Whether its claim has a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<EnvironmentPhase>,
    /// The condition `ErrorOccurred`: the problem of its claim, if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Whether an environment has a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentPhase {
    /// Its claim does not exist, or has no target.
    Unbound,
    /// Labs can run in it.
    Bound,
}

impl Kind for Environment {
    const KIND: &'static str = "Environment";
    const PLURAL: &'static str = "environments";
}

impl Environment {
    /// Returns the problem in the condition `ErrorOccurred`.
    pub fn problem(&self) -> Option<&Condition> {
        super::reconcile::problem(&self.status.conditions)
    }

    /// Returns the name of the environment's claim.
    pub fn claim_name(&self) -> &ObjectName {
        &self.spec.configuration.target.deployment_target_claim.claim_name
    }
}
