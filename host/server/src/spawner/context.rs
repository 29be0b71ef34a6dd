//! What every driver works with.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Semaphore;
use uuid::Uuid;
use wasmspawner_core::config::Config;
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::lifecycle::{Operation, OperationKind, RestartPolicy, TimeLimits};
use wasmspawner_core::names::{LabNames, NameError};
use wasmspawner_core::policy::Grants;
use wasmspawner_core::stage::StagePolicy;

use super::clock::Clock;
use super::hub_comparison::HubComparison;
use super::provisioned::Provisioned;
use super::rules::Rules;
use super::volumes::Volumes;
use crate::history::History;
use crate::k8s::{Applier, Deleter, Health, SiteSecrets};
use crate::records::SpawnRecords;
use crate::store::Store;
use crate::telemetry::Metrics;
use crate::wasm::Policies;

/// What every driver works with: the site's configuration and the modules below this one.
pub struct Context {
    /// The configuration.
    pub config: Config,
    /// The live chain of policies.
    pub policies: Policies,
    /// The cluster.
    pub client: kube::Client,
    /// Creates objects.
    pub applier: Applier,
    /// Deletes them.
    pub deleter: Deleter,
    /// The records of what was spawned.
    pub records: SpawnRecords,
    /// What the cluster has.
    pub store: Store,
    /// Whether the cluster's API answers.
    pub health: Health,
    /// The site's own Secrets.
    pub secrets: SiteSecrets,
    /// The records of operations.
    pub history: History,
    /// Who has had a lab before.
    pub provisioned: Provisioned,
    /// Which server has which volume claims, where claims outlive labs.
    pub volumes: Option<Volumes>,
    /// Which labs the Hub knows, where the service may ask it.
    pub hub: Option<HubComparison>,
    /// Counters.
    pub metrics: Metrics,
    /// One permit a spawn under way.
    pub spawn_slots: Arc<Semaphore>,
    /// The time that deadlines are measured with.
    pub clock: Clock,
}

impl Context {
    /// The part that needs no cluster.
    pub(super) fn rules(&self) -> Rules<'_> {
        Rules { config: &self.config, policies: &self.policies }
    }

    /// The names of a lab: those that it keeps, and today's templates for the others.
    pub(super) fn names(&self, key: &LabKey) -> Result<LabNames, NameError> {
        let remembering = self.volumes.as_ref().filter(|_| self.config.names.remembers_pvc());
        let kept = remembering.map(|volumes| volumes.kept_names(key)).unwrap_or_default();
        self.rules().names(&kept, key)
    }

    /// What the operator grants the policy of this name.
    pub(super) fn grants(&self, policy: &str) -> Grants {
        let configured = self.config.policies.iter().find(|configured| configured.name == policy);
        configured.map(|configured| configured.grants.clone()).unwrap_or_default()
    }

    pub(super) fn time_limits(&self) -> TimeLimits {
        self.config.limits.time_limits()
    }

    pub(super) fn stage_policy(&self) -> StagePolicy {
        self.config.limits.stage_policy()
    }

    pub(super) fn restart_policy(&self) -> RestartPolicy {
        self.config.limits.restart_policy()
    }

    /// The time that deadlines are measured with.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A new operation, beginning now.
    pub(super) fn operation(&self, kind: OperationKind, limits: TimeLimits) -> Operation {
        limits.operation(JobId::new(Uuid::now_v7()), kind, self.now())
    }
}
