//! `DeploymentTarget`: a namespace with credentials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CLUSTER, NAMESPACE, NAMESPACE_PROVISIONER, PROVISIONED_BY, RELEASED, ReclaimPolicy};
use crate::custom_resource::condition::Condition;
use crate::custom_resource::{Kind, Object};
use crate::names::{NamespaceName, ObjectName};

/// A namespace with credentials, in this cluster or in another.
pub type Target = Object<TargetSpec, TargetStatus>;

/// What a target is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetSpec {
    /// The class of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_target_class_name: Option<ObjectName>,
    /// The namespace and how it is reached; absent while a provisioner works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_credentials: Option<KubernetesCredentials>,
    /// The claim that has the target, or is to have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<ClaimRef>,
    /// What becomes of the target when its claim is deleted. Default: what its class says. A provisioner writes here what
    /// the class said when the target was made; without this field and without a class it is `Retain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
}

/// A namespace, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesCredentials {
    /// The namespace.
    pub default_namespace: NamespaceName,
    /// The URL of the cluster's API server. Default: what the Secret's kubeconfig says, or this cluster.
    #[serde(default, rename = "apiURL", skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    /// A Secret in the service's own namespace with a `kubeconfig`, or with a `token` and, if needed, a `ca.crt`. Without
    /// one the namespace is in this cluster, and the service uses its own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_credentials_secret: Option<ObjectName>,
    /// True if the API server's certificate is not to be verified. Anybody in between can then read and change requests.
    #[serde(default, rename = "allowInsecureSkipTLSVerify")]
    pub allow_insecure_skip_tls_verify: bool,
}

/// How another cluster is reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRef {
    /// The Secret with the credentials, in the service's own namespace.
    pub secret: ObjectName,
    /// The URL of the API server, if the Secret does not say it.
    #[serde(default, rename = "apiURL", skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    /// True if the API server's certificate is not to be verified.
    #[serde(default)]
    pub insecure: bool,
}

/// The claim of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimRef {
    /// The claim's name.
    pub name: ObjectName,
    /// The claim's uid, which the binder adds: a later claim of the same name is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl ClaimRef {
    /// Creates a reference to this claim and to no later claim of the same name.
    pub(super) fn from_claim(claim: &super::Claim) -> Option<Self> {
        let name = ObjectName::parse(claim.name()).ok()?;
        Some(Self { name, uid: Some(claim.uid().to_owned()) })
    }
}

/// The state of a target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    /// Where in its life the target is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<TargetPhase>,
    /// The condition `ErrorOccurred`, if something is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Where in its life a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TargetPhase {
    /// It is being made, has not been checked yet, or its cluster does not answer.
    Pending,
    /// A claim may have it.
    Available,
    /// A claim has it.
    Bound,
    /// Its claim was deleted, and it was kept.
    Released,
    /// Labs cannot run in it until somebody intervenes, or it could not be removed in time. The condition says why.
    Failed,
}

impl TargetPhase {
    /// All phases.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Available, Self::Bound, Self::Released, Self::Failed];

    /// The phase as it is written in targets.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Available => "Available",
            Self::Bound => "Bound",
            Self::Released => "Released",
            Self::Failed => "Failed",
        }
    }
}

impl Kind for Target {
    const KIND: &'static str = "DeploymentTarget";
    const PLURAL: &'static str = "deploymenttargets";
}

impl Target {
    /// Returns true if the target was made by the built-in provisioner, which then has to remove the target's objects.
    pub fn is_ours(&self) -> bool {
        self.annotation(PROVISIONED_BY) == Some(NAMESPACE_PROVISIONER)
    }

    /// Returns the reference to the target's cluster; `None` for the service's own cluster.
    pub fn cluster(&self) -> Option<ClusterRef> {
        if self.is_ours() {
            let secret = ObjectName::parse(self.annotation(CLUSTER)?).ok()?;
            return Some(ClusterRef { secret, api_url: None, insecure: false });
        }
        let credentials = self.spec.kubernetes_credentials.as_ref()?;
        Some(ClusterRef {
            secret: credentials.cluster_credentials_secret.clone()?,
            api_url: credentials.api_url.clone(),
            insecure: credentials.allow_insecure_skip_tls_verify,
        })
    }

    /// Returns the name of the target's namespace, even while the target is being made.
    pub fn namespace(&self) -> Option<&str> {
        let reached = self.spec.kubernetes_credentials.as_ref();
        reached.map(|reached| reached.default_namespace.as_str()).or_else(|| self.annotation(NAMESPACE))
    }

    /// Returns the problem in the condition `ErrorOccurred`.
    pub fn problem(&self) -> Option<&Condition> {
        super::reconcile::problem(&self.status.conditions)
    }

    /// Returns true if the claim of the target was deleted, and the target is kept for its owner.
    pub fn is_released(&self) -> bool {
        self.has_label(RELEASED)
    }

    /// Returns true if the binder or the provisioner gave the target to a claim: only they write the claim's uid.
    pub(super) fn was_given(&self) -> bool {
        self.spec.claim_ref.as_ref().is_some_and(|reference| reference.uid.is_some())
    }

    /// Returns true if the target refers to this claim as the one that has it, or is to have it.
    pub fn is_for(&self, claim: &super::Claim) -> bool {
        self.spec.claim_ref.as_ref().is_some_and(|reference| {
            reference.name == claim.name() && reference.uid.as_deref().is_none_or(|uid| uid == claim.uid())
        })
    }
}
