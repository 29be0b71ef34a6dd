//! Environments: the claims, targets and classes in the cluster, and the controller that carries out the decisions of
//! the core about them.

mod administration;
mod checking;
mod controller;
mod follower;
mod observed;
mod outcome;
mod provisioning;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use wasmspawner_core::custom_resource::environment::{
    Claim, ClaimSpec, ClaimState, ClaimStatus, ClassSpec, EnvironmentSpec, EnvironmentStatus, FINALIZER,
    NAMESPACE, OWNER, TargetSpec, TargetStatus,
};
use wasmspawner_core::custom_resource::{Kind, Object};
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::labels::{SPAWN_LABEL, of_installation};
use wasmspawner_core::names::{LabelValue, NamespaceName, ObjectName};

use crate::clusters::Clusters;
use crate::k8s::{Connection, CustomResources, KubernetesError, belongs_to};
pub use administration::TargetRefusal;
pub use follower::ClaimFollower;
use observed::ObservedEnvironments;

/// The claims, targets and classes in the cluster. Clones share them.
#[derive(Clone)]
pub struct Environments {
    seen: Arc<ObservedEnvironments>,
    classes: CustomResources<ClassSpec, ()>,
    claims: CustomResources<ClaimSpec, ClaimStatus>,
    targets: CustomResources<TargetSpec, TargetStatus>,
    named: CustomResources<EnvironmentSpec, EnvironmentStatus>,
    clusters: Clusters,
    /// The service's own namespace, in which claims and targets are.
    namespace: NamespaceName,
    instance: LabelValue,
}

/// The custom resources of environments are not installed in the cluster.
#[derive(Debug, thiserror::Error)]
#[error(
    "`environments` is configured, and the cluster does not know the custom resource {0}.wasmspawner.io; install it with `wasmspawner crds | kubectl apply -f -`, or apply deploy/crds.yaml"
)]
pub struct NotInstalled(&'static str);

/// The contents of a lab's claim.
pub struct LabClaim<'a> {
    /// The name of the claim.
    pub name: &'a ObjectName,
    /// The class of the target.
    pub class: &'a ObjectName,
    /// The lab that the target is for.
    pub owner: &'a LabKey,
    /// The name for a new namespace.
    pub namespace: &'a NamespaceName,
    /// The uid of the lab's record.
    pub spawn: &'a str,
}

impl Environments {
    /// The environments of one installation of the service (`instance`) in `namespace`.
    pub fn new(
        connection: &Connection,
        clusters: Clusters,
        namespace: NamespaceName,
        instance: LabelValue,
        request_timeout: Duration,
    ) -> Self {
        let own = namespace.as_str();
        Self {
            seen: Arc::default(),
            classes: CustomResources::new(connection, own, request_timeout),
            claims: CustomResources::new(connection, own, request_timeout),
            targets: CustomResources::new(connection, own, request_timeout),
            named: CustomResources::new(connection, own, request_timeout),
            clusters,
            namespace,
            instance,
        }
    }

    /// Fails if one of the custom resources is not installed.
    pub async fn check_installed(&self) -> Result<(), NotInstalled> {
        use wasmspawner_core::custom_resource::environment::{Class, Environment, Target};
        let (classes, claims, targets, environments) = tokio::join!(
            self.classes.is_installed(),
            self.claims.is_installed(),
            self.targets.is_installed(),
            self.named.is_installed()
        );
        let missing = [
            (classes, Class::PLURAL),
            (claims, Claim::PLURAL),
            (targets, Target::PLURAL),
            (environments, Environment::PLURAL),
        ];
        missing
            .into_iter()
            .find(|(installed, _)| !installed)
            .map_or(Ok(()), |(_, kind)| Err(NotInstalled(kind)))
    }

    /// Makes the claim of a lab. A claim that an earlier attempt has made for the same spawn stays. Returns `false` if
    /// there is a claim of somebody else, which is left alone. It may be that of the previous lab.
    pub async fn claim(&self, wanted: &LabClaim<'_>) -> Result<bool, KubernetesError> {
        let mut claim: Claim = Object {
            metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                name: Some(wanted.name.to_string()),
                finalizers: Some(vec![FINALIZER.to_owned()]),
                ..Default::default()
            },
            spec: ClaimSpec {
                deployment_target_class_name: Some(wanted.class.clone()),
                ..ClaimSpec::default()
            },
            status: ClaimStatus::default(),
        };
        claim.annotate(OWNER, &wanted.owner.to_string());
        claim.annotate(NAMESPACE, wanted.namespace.as_str());
        let mut labels = of_installation(&self.instance);
        labels.insert(SPAWN_LABEL.to_owned(), wanted.spawn.to_owned());
        claim.metadata.labels = Some(labels);
        if let Some(created) = self.claims.create(&claim).await? {
            self.seen.put_claim(created);
            return Ok(true);
        }
        let found = self.claims.get(wanted.name.as_str()).await?;
        let Some(found) =
            found.filter(|found| belongs_to(&found.metadata, wanted.spawn) && !found.is_deleting())
        else {
            return Ok(false);
        };
        self.seen.put_claim(found);
        Ok(true)
    }

    /// Deletes the claim of a lab. Returns true if it is gone. A claim of somebody else is left alone.
    pub async fn delete_claim(&self, name: &ObjectName, spawn: &str) -> Result<bool, KubernetesError> {
        let Some(found) =
            self.claims.get(name.as_str()).await?.filter(|found| belongs_to(&found.metadata, spawn))
        else {
            self.seen.remove_claim_of(name.as_str(), spawn);
            return Ok(true);
        };
        if !found.is_deleting() {
            self.claims.delete(name.as_str(), found.uid()).await?;
        }
        Ok(false)
    }

    /// Follows a claim.
    pub fn follow_claim(&self, name: &ObjectName) -> ClaimFollower {
        ClaimFollower::new(&self.seen, name)
    }

    /// Returns the progress of a claim.
    pub fn claim_state(&self, name: &ObjectName) -> ClaimState {
        self.seen.with(|world| world.claim_state(name.as_str()))
    }

    /// The claim of the environment of this name.
    pub fn claim_of_environment(&self, name: &ObjectName) -> Option<ObjectName> {
        self.seen.with(|world| Some(world.environments.get(name.as_str())?.claim_name().clone()))
    }

    /// A receiver of every change.
    fn follow(&self) -> watch::Receiver<u64> {
        self.seen.follow()
    }

    /// Waits until all kinds have been listed once.
    pub async fn first_sync(&self) {
        self.seen.first_sync().await;
    }
}
