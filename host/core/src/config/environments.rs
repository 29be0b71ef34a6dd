//! `environments`: labs in namespaces that claims, targets and classes describe.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidSetting, KubernetesConfig, LabRoutes, NamespaceReclaim, lab_routes};
use crate::names::ObjectName;

/// Labs in namespaces that `DeploymentTargetClaim`s, `DeploymentTarget`s and `DeploymentTargetClass`es describe. If this
/// section is there, even an empty one, policies may choose a class for a lab. It needs the definitions that `wasmspawner
/// crds` prints and the permissions of `deploy/permissions/environments.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnvironmentsConfig {
    /// The class of labs for which no policy chooses one, or `environment/NAME` for a named environment. The classes
    /// `delete` and `retain` exist without an object. Default: such labs have namespaces as `kubernetes.namespaces` says,
    /// without a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_class: Option<EnvironmentChoice>,
    /// How the Hub reaches labs in other clusters, by the name of the Secret with the credentials of the cluster. Default: at
    /// the addresses of their pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<ObjectName, LabRoutes>,
}

/// Where a lab is to run: a class, of which it gets a target of its own, or an environment, which it shares with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum EnvironmentChoice {
    /// A `DeploymentTargetClass`.
    Class(ObjectName),
    /// An `Environment`.
    Named(ObjectName),
}

const NAMED: &str = "environment/";

impl EnvironmentChoice {
    /// Parses the name of a class, or `environment/` and the name of an environment.
    pub fn parse(text: &str) -> Result<Self, crate::names::InvalidName> {
        match text.strip_prefix(NAMED) {
            Some(name) => ObjectName::parse(name).map(Self::Named),
            None => ObjectName::parse(text).map(Self::Class),
        }
    }

    /// True for the class `delete`, whose namespaces go with everything in them.
    pub(super) fn is_built_in_delete(&self) -> bool {
        matches!(self, Self::Class(name) if name.as_str() == "delete")
    }
}

impl TryFrom<String> for EnvironmentChoice {
    type Error = crate::names::InvalidName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<EnvironmentChoice> for String {
    fn from(choice: EnvironmentChoice) -> Self {
        match choice {
            EnvironmentChoice::Class(name) => name.into(),
            EnvironmentChoice::Named(name) => format!("{NAMED}{name}"),
        }
    }
}

/// With all labs in one namespace the service sees nothing of others; and the routes of other clusters are checked.
pub(super) fn check(
    environments: Option<&EnvironmentsConfig>,
    kubernetes: &KubernetesConfig,
) -> Vec<InvalidSetting> {
    let Some(environments) = environments else { return Vec::new() };
    let single = kubernetes.namespaces == NamespaceReclaim::Single;
    let of_single = single.then(|| {
        InvalidSetting::new(
            "environments",
            "labs of environments have namespaces of their own, and kubernetes.namespaces is `single`; set that to \
             `delete` or `retain`, or remove this section",
        )
    });
    of_single.into_iter().chain(lab_routes::check(&environments.clusters)).collect()
}
