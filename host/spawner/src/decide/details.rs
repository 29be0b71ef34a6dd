//! The details of a lab, known once its objects are decided.

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmspawner_core::lifecycle::Operation;
use wasmspawner_core::policy::compose::ValidatedSpawn;
use wasmspawner_core::record::{LabDescription, PolicyRef, Quotas, ResourceAmount};

use crate::context::site_rules::SiteRules;
use crate::published::snapshot::LabDetails;
use wasmspawner_policies::LoadedPolicy;

/// Describes a lab as it is decided. The parts that are decided elsewhere are added later.
pub(crate) fn details(rules: &SiteRules<'_>, spawn: &ValidatedSpawn, operation: &Operation) -> LabDetails {
    let resources = &spawn.resources;
    let description = LabDescription {
        options: spawn.options.clone(),
        uid: spawn.identity.uid,
        gid: spawn.identity.gid,
        groups: spawn.identity.groups.clone(),
        foreign_blueprint: None,
        quotas: Some(Quotas {
            limits: limits_of(spawn),
            requests: amount(resources.cpu_request_millis, resources.memory_request_bytes),
        }),
        image: Some(spawn.image.clone()),
        policies: rules
            .policies
            .loaded()
            .into_iter()
            .map(|LoadedPolicy { name, digest, .. }| {
                let answered = spawn.provenance.components.get(name.as_str()).copied();
                PolicyRef { name: name.into(), digest: answered.unwrap_or(digest).to_string() }
            })
            .collect(),
        decided_by: BTreeMap::new(),
        lifted: spawn.lifted.names(),
        hidden_env: BTreeMap::new(),
        kernel: None,
        pool: None,
    };
    LabDetails {
        description: Arc::new(description),
        env: spawn.redacted_env(),
        started_at: Some(operation.started_at),
    }
}

/// The limits of a pod.
pub(crate) fn limits_of(spawn: &ValidatedSpawn) -> ResourceAmount {
    amount(spawn.resources.cpu_limit_millis, spawn.resources.memory_limit_bytes)
}

fn amount(cpu: Option<u64>, memory: Option<u64>) -> ResourceAmount {
    ResourceAmount { cpu: cpu.map(cpus), memory }
}

#[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 thousandths of a CPU")]
fn cpus(millis: u64) -> f64 {
    millis as f64 / 1000.0
}
