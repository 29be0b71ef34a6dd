//! `DeploymentTargetClaim`: a request for a target.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BIND_COMPLETE, DT_PROVISIONER};
use crate::custom_resource::condition::Condition;
use crate::custom_resource::{Kind, Object};
use crate::names::ObjectName;

/// A request for any target of a class, or for a particular target.
pub type Claim = Object<ClaimSpec, ClaimStatus>;

/// What a claim asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSpec {
    /// The class of the target. Without a class, the claim waits until a target without a class is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_target_class_name: Option<ObjectName>,
    /// The target, if its owner wants a particular one; otherwise the binder writes here what it has chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name: Option<ObjectName>,
    /// The labels that a target must have. With a selector, the binder chooses among the targets that exist, and no
    /// provisioner makes one. It does not apply to a target that the claim names, or that names the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<TargetSelector>,
}

/// The labels of the targets that a claim may take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetSelector {
    /// The labels, with their values.
    #[schemars(length(min = 1))]
    pub match_labels: BTreeMap<String, String>,
}

impl TargetSelector {
    fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.match_labels
            .iter()
            .all(|(label, value)| labels.and_then(|labels| labels.get(label)) == Some(value))
    }
}

/// The state of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimStatus {
    /// Where in its life the claim is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClaimPhase>,
    /// The condition `ErrorOccurred`, if something is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Where in its life a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClaimPhase {
    /// There is no target for it yet.
    Pending,
    /// It has a target, which nobody else has.
    Bound,
    /// Its target is gone. It is bound again if the target comes back.
    Lost,
}

impl ClaimPhase {
    /// All phases.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Bound, Self::Lost];

    /// The phase as it is written in claims.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Bound => "Bound",
            Self::Lost => "Lost",
        }
    }
}

impl Kind for Claim {
    const KIND: &'static str = "DeploymentTargetClaim";
    const PLURAL: &'static str = "deploymenttargetclaims";
}

impl Claim {
    /// Returns true if the claim was bound once.
    pub fn was_bound(&self) -> bool {
        self.annotation(BIND_COMPLETE).is_some()
    }

    /// Returns true if the claim has a target.
    pub fn is_bound(&self) -> bool {
        self.status.phase == Some(ClaimPhase::Bound)
    }

    /// Returns true if the claim may take a target of its class with these labels.
    pub(super) fn accepts(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.spec.selector.as_ref().is_none_or(|selector| selector.matches(labels))
    }

    /// Returns true if a provisioner is to make a target for the claim.
    pub fn is_dynamic(&self) -> bool {
        self.annotation(DT_PROVISIONER).is_some()
    }

    /// Returns the name of the target that the built-in provisioner makes for the claim. Each attempt uses the same
    /// name, so a repeated attempt makes no second target.
    pub(super) fn name_of_made_target(&self) -> String {
        let part: String = self.uid().chars().filter(|letter| *letter != '-').take(8).collect();
        format!("{}-{part}", self.name())
    }

    /// Returns the problem in the condition `ErrorOccurred`.
    pub fn problem(&self) -> Option<&Condition> {
        super::reconcile::problem(&self.status.conditions)
    }
}
