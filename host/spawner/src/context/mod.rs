//! The configuration and modules that every driver uses.

pub(crate) mod clock;
pub(crate) mod hub_comparison;
pub(crate) mod lab_routes;
pub(crate) mod live_config;
pub(crate) mod provisioned;
pub(crate) mod site_rules;
pub(crate) mod volumes;

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Semaphore;
use uuid::Uuid;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::config::lab::CertificateIssuer;
use wasmspawner_core::custom_resource::environment::NamespaceFate;
use wasmspawner_core::lifecycle::stage::StagePolicy;
use wasmspawner_core::lifecycle::{Operation, OperationKind, RestartPolicy, TimeLimits};
use wasmspawner_core::manifest::{CERTIFICATES, KINDS_IN_OWN_CLUSTER, ObjectKind, route_kinds};
use wasmspawner_core::names::lab::{JobId, LabKey};
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::names::{LabNames, NameError};
use wasmspawner_core::policy::Grants;
use wasmspawner_core::record::{Place, PlaceClaim, PlaceKind};

use self::clock::Clock;
use self::hub_comparison::HubComparison;
use self::lab_routes::lab_routes;
use self::live_config::LiveConfig;
use self::provisioned::Provisioned;
use self::site_rules::SiteRules;
use self::volumes::Volumes;
use crate::blueprint_providers::BlueprintProviders;
use wasmspawner_history::History;
use wasmspawner_kubernetes::clusters::{Cluster, Clusters};
use wasmspawner_kubernetes::environments::Environments;
use wasmspawner_kubernetes::k8s::SiteSecrets;
use wasmspawner_kubernetes::observed::Reach;
use wasmspawner_kubernetes::records::SpawnRecords;
use wasmspawner_kubernetes::site_blueprints::SiteBlueprints;
use wasmspawner_kubernetes::workloads::Workloads;
use wasmspawner_policies::Policies;
use wasmspawner_telemetry::{Metrics, Reload};

/// The configuration and modules that every driver uses.
pub struct Context {
    /// The validated configuration, which is replaced when it is read again.
    pub config: LiveConfig,
    /// The loaded chain of policies.
    pub policies: Policies,
    /// The site's blueprints.
    pub blueprints: SiteBlueprints,
    /// Reads blueprints that the site has not written.
    pub blueprint_providers: BlueprintProviders,
    /// The clusters with labs.
    pub clusters: Clusters,
    /// Claims, targets and classes; only where the site has them.
    pub environments: Option<Environments>,
    /// The workloads into which labs may be put; only where there are namespaces for that.
    pub workloads: Option<Workloads>,
    /// The records of labs, stored in the cluster.
    pub records: SpawnRecords,
    /// The site's own Secrets, which are copied into labs.
    pub secrets: SiteSecrets,
    /// The records of operations on labs.
    pub history: History,
    /// The records of operations on children of labs. They are separate, so that a user who starts many kernels does
    /// not push out the records of labs.
    pub history_of_children: History,
    /// The users who have had a lab before.
    pub provisioned: Provisioned,
    /// The volume claims of each server. Only where claims outlive labs.
    pub volumes: Option<Volumes>,
    /// Compares the labs with the servers that the Hub knows. Only where the service may ask the Hub.
    pub hub: Option<HubComparison>,
    /// The service's metrics.
    pub metrics: Metrics,
    /// One permit per spawn under way.
    pub spawn_slots: Arc<Semaphore>,
    /// The clock for deadlines.
    pub clock: Clock,
}

/// Converts the fate of a claim's namespace to the reclaim mode of namespaces without a claim.
pub(crate) fn reclaim_of(fate: NamespaceFate) -> NamespaceReclaim {
    match fate {
        NamespaceFate::Deleted | NamespaceFate::Retained => NamespaceReclaim::Retain,
        NamespaceFate::Shared => NamespaceReclaim::Single,
    }
}

impl Context {
    /// Counts a reload. It has failed as long as a policy is not loaded as it is configured.
    pub fn count_reload<T, E>(&self, reloaded: &Result<T, E>) {
        let is_complete = self.policies.problem().is_none();
        self.metrics.reloaded(if is_complete { Reload::of(reloaded) } else { Reload::Failed });
    }

    /// The configuration and the policies: all that a decision needs without a cluster.
    pub(crate) fn rules(&self) -> SiteRules<'_> {
        let config = self.config.current();
        SiteRules {
            blueprints: self.blueprints.now(&config),
            config,
            policies: &self.policies,
            providers: &self.blueprint_providers,
        }
    }

    /// The names of a lab: those that were kept from earlier labs, and otherwise those that the templates give.
    pub(crate) fn names(&self, key: &LabKey) -> Result<LabNames, NameError> {
        let rules = self.rules();
        let remembering = self.volumes.as_ref().filter(|_| rules.config.names.remembers_pvc());
        let kept = remembering.map(|volumes| volumes.kept_names(key)).unwrap_or_default();
        rules.names(&kept, key)
    }

    /// The part of the cluster in which labs are.
    pub(crate) fn reach(&self) -> Reach {
        Reach::from_config(&self.config.current())
    }

    /// The records of operations on this lab or child.
    pub(crate) fn history_of(&self, key: &SpawnKey) -> &History {
        if key.is_lab() { &self.history } else { &self.history_of_children }
    }

    /// The reclaim mode of the namespace when the lab is stopped. A child never has a namespace of its own, and the
    /// namespace of a claim goes with its target.
    pub(crate) fn reclaim(&self, key: &SpawnKey, place: &Place) -> NamespaceReclaim {
        match &place.kind {
            _ if !key.is_lab() => NamespaceReclaim::Single,
            PlaceKind::InWorkload(_) | PlaceKind::BesideLab(_) => NamespaceReclaim::Single,
            PlaceKind::Claimed { claim, .. } => reclaim_of(claim.fate),
            PlaceKind::Configured => self.config.current().kubernetes.namespaces,
        }
    }

    /// True if the namespace of a place has limits that are not those of one lab.
    pub(crate) fn is_shared(&self, place: &Place) -> bool {
        match place.kind.fate() {
            Some(fate) => fate == NamespaceFate::Shared,
            None => self.config.current().kubernetes.namespaces == NamespaceReclaim::Single,
        }
    }

    /// The kinds of objects that lead to labs in the cluster of a place.
    pub(crate) fn route_kinds(&self, place: &Place) -> Vec<ObjectKind> {
        let config = self.config.current();
        if place.entrance.has_service() {
            return kinds_of_service(place.entrance.certificate());
        }
        lab_routes(&config, place.kind.cluster()).map(route_kinds).unwrap_or_default()
    }

    /// The kinds that labs may have left in the service's own cluster, beside those that every lab has.
    pub(crate) fn kinds_in_own_cluster(&self) -> Vec<ObjectKind> {
        let config = self.config.current();
        if config.embedded.is_some() {
            return Vec::new();
        }
        let service = config.lab.section.service.as_ref();
        let issuer = service.and_then(|service| Some(service.certificate.as_ref()?.issuer()));
        kinds_of_service(issuer)
    }

    /// The service's own cluster.
    pub(crate) fn own_cluster(&self) -> &Cluster {
        self.clusters.own()
    }

    /// The cluster of a place.
    pub(crate) fn cluster(&self, place: &Place) -> Cluster {
        self.clusters.get(place.kind.cluster())
    }

    /// The kind of the place of a lab that is being accepted. If the lab may get a claim, its record names the claim
    /// before the claim is made.
    pub(crate) fn first_place(&self, key: &SpawnKey, operation: JobId) -> PlaceKind {
        if self.environments.is_none() {
            return PlaceKind::Configured;
        }
        let claim = PlaceClaim::of_lab(&key.object_name(), operation);
        PlaceKind::Claimed { claim, cluster: None }
    }

    /// The grants of the operator to the policy of this name.
    pub(crate) fn grants(&self, policy: &str) -> Grants {
        let config = self.config.current();
        let configured = config.policies.iter().find(|configured| configured.name == policy);
        configured.map(|configured| configured.grants.clone()).unwrap_or_default()
    }

    pub(crate) fn time_limits(&self) -> TimeLimits {
        self.config.current().limits.time_limits()
    }

    pub(crate) fn stage_policy(&self) -> StagePolicy {
        self.config.current().limits.stage_policy()
    }

    pub(crate) fn restart_policy(&self) -> RestartPolicy {
        self.config.current().limits.restart_policy()
    }

    /// The present time for deadlines.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A new operation that begins now.
    pub(crate) fn operation(&self, kind: OperationKind, limits: TimeLimits) -> Operation {
        limits.operation(JobId::new(Uuid::now_v7()), kind, self.now())
    }
}

/// The kinds of a lab that has a Service, and a certificate from this issuer.
fn kinds_of_service(certificate: Option<CertificateIssuer>) -> Vec<ObjectKind> {
    let certificates = (certificate == Some(CertificateIssuer::CertManager)).then_some(CERTIFICATES);
    KINDS_IN_OWN_CLUSTER.into_iter().chain(certificates).collect()
}
