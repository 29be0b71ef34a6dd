//! Loads a chain of policies.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use wasmspawner_core::config::OnFailure;

use super::candidate::Candidate;
use super::last_good::LastGood;
use super::link::Link;
use super::stand_in::StandIn;
use crate::engine::Engine;
use crate::errors::{LoadError, LoadErrorKind};
use crate::limits::patience::Patience;
use crate::names::policy_name::PolicyName;
use crate::policy::Policy;
use crate::policy::loader;
use crate::reports::version_record::{Version, VersionRecord};
use crate::source::component_source::Component;
use crate::source::spec::PolicySpec;

/// The policies, in the order of their calls.
pub(crate) type Chain = Vec<Arc<Link>>;

/// Loads a chain that replaces `before`; at the start of the service, there is none. An earlier version, if one is kept,
/// then stands in for a policy that cannot be loaded.
pub(crate) async fn load_chain(
    engine: &Arc<Engine>,
    specs: Vec<PolicySpec>,
    before: Option<&[Arc<Link>]>,
) -> Result<Chain, LoadError> {
    let mut names = BTreeSet::new();
    for spec in &specs {
        if !names.insert(spec.name.clone()) {
            return Err(LoadError { policy: spec.name.clone(), kind: LoadErrorKind::DuplicateName });
        }
    }
    // Concurrent reads: several slow registries take no longer than one.
    let components = join_all(specs.iter().map(|spec| loader::read(&engine.options, spec))).await;
    let patience = Patience::default();
    let (mut chain, mut records) = (Vec::with_capacity(specs.len()), Vec::new());
    for (spec, component) in specs.into_iter().zip(components) {
        let candidate = load_candidate(engine, &spec).await;
        let (policy, bytes) = match load_one(engine, spec.clone(), component, &patience).await {
            Ok(loaded) => loaded,
            // What stands in goes on to do so, with the grants and keys of now.
            Err(error) if before.is_none_or(|before| stands_in(before, &error.policy)) => {
                let (policy, stand_in, record) = StandIn::find(spec, error, engine, &patience).await?;
                records.push(record);
                let stand_in = Some(stand_in);
                chain.push(Arc::new(Link { policy, candidate, last_good: None, stand_in }));
                continue;
            }
            Err(error) => return Err(error),
        };
        let replaced = before.into_iter().flatten().find(|link| link.name() == policy.name());
        let recorded = record_before(engine, &policy);
        remember_failure(recorded.as_ref(), replaced, &policy);
        let in_memory = replaced.and_then(|link| link.last_good_for(&policy, engine));
        let (version, last_good) = match in_memory {
            Some(last_good) => (Some(last_good.policy.recorded()), Some(last_good)),
            None => LastGood::recorded(recorded, &policy, engine, &patience).await,
        };
        if policy.spec.on_failure == OnFailure::LastGood {
            records.push((record(&policy, version), bytes));
        }
        chain.push(Arc::new(Link { policy, candidate, last_good, stand_in: None }));
    }
    // All policies are loaded, so the whole chain will be used.
    keep_records(engine, records).await;
    Ok(chain)
}

fn stands_in(chain: &[Arc<Link>], policy: &PolicyName) -> bool {
    chain.iter().any(|link| link.name() == policy && link.stand_in.is_some())
}

/// Loads a policy from its component. Returns the component's bytes, too.
async fn load_one(
    engine: &Arc<Engine>,
    spec: PolicySpec,
    component: Result<Component, LoadError>,
    patience: &Patience,
) -> Result<(Policy, Bytes), LoadError> {
    let component = component?;
    let bytes = component.bytes.clone();
    Ok((Box::pin(loader::load(engine, spec, component, patience)).await?, bytes))
}

/// Returns the record of the policy, if the policy falls back on an earlier version.
fn record_before(engine: &Engine, policy: &Policy) -> Option<VersionRecord> {
    let falls_back = policy.spec.on_failure == OnFailure::LastGood;
    engine.versions.as_ref().filter(|_| falls_back)?.record(policy.name())
}

/// Marks the policy as failed if the same version has failed before.
fn remember_failure(before: Option<&VersionRecord>, replaced: Option<&Arc<Link>>, policy: &Policy) {
    let recorded = before.is_some_and(|record| record.failed && record.in_use.is_like(&policy.recorded()));
    if recorded || replaced.is_some_and(|link| link.has_failed() && policy.is_like(&link.policy)) {
        policy.set_failed();
    }
}

fn record(policy: &Policy, last_good: Option<Version>) -> VersionRecord {
    let (name, in_use) = (policy.name().to_string(), policy.recorded());
    VersionRecord { policy: name, in_use, failed: policy.has_failed(), last_good }
}

async fn keep_records(engine: &Engine, records: Vec<(VersionRecord, Bytes)>) {
    let Some(kept) = engine.versions.clone() else { return };
    let replaced = tokio::task::spawn_blocking(move || kept.replace(&records)).await;
    if let Err(error) = replaced.unwrap_or_else(|panic| Err(panic.into())) {
        // The only consequence: after a restart, no version answers if a policy fails.
        tracing::warn!(%error, "the versions of the policies in use cannot be recorded");
    }
}

async fn load_candidate(engine: &Arc<Engine>, spec: &PolicySpec) -> Option<Arc<Candidate>> {
    let candidate = spec.candidate.as_deref()?.clone();
    let loaded = async {
        let component = loader::read(&engine.options, &candidate).await?;
        // The policies in use do not wait for the candidate.
        Box::pin(loader::load(engine, candidate, component, &Patience::none())).await
    };
    let loaded = loaded.await.map_err(|error| error.kind);
    Some(Arc::new(Candidate::new(spec.name.clone(), loaded)))
}
