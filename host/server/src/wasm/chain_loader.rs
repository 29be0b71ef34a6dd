//! Loads a chain of policies.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::try_join_all;

use super::candidate::Candidate;
use super::engine::Engine;
use super::errors::{LoadError, LoadErrorKind};
use super::kept_versions;
use super::link::{LastGood, Link};
use super::loader;
use super::spec::PolicySpec;

/// The policies in the order in which they are asked.
pub(super) type Chain = Vec<Arc<Link>>;

/// Loads a chain that takes the place of `before`.
pub(super) async fn load_chain(
    engine: &Arc<Engine>,
    specs: Vec<PolicySpec>,
    before: &Chain,
) -> Result<Chain, LoadError> {
    let mut names = BTreeSet::new();
    for spec in &specs {
        if !names.insert(spec.name.clone()) {
            return Err(LoadError { policy: spec.name.clone(), kind: LoadErrorKind::DuplicateName });
        }
    }
    // Several slow registries take no longer than one.
    let components = try_join_all(specs.iter().map(|spec| loader::read(&engine.options, spec))).await?;
    let mut chain = Vec::with_capacity(specs.len());
    for (spec, component) in specs.into_iter().zip(components) {
        let candidate = load_candidate(engine, &spec).await;
        let bytes = component.bytes.clone();
        let policy = Box::pin(loader::load(engine, spec, component)).await?;
        let replaced = before.iter().find(|link| link.name() == policy.name());
        let last_good = match replaced {
            Some(link) => link.last_good_for(&policy, engine),
            None => kept_versions::last_good(&policy, engine).await.map(LastGood::new),
        };
        chain.push((Link { policy, candidate, last_good }, bytes));
    }
    // Only now is it known that all of them will be used.
    Ok(chain.into_iter().map(|(link, component)| Arc::new(link.kept(&component, engine))).collect())
}

async fn load_candidate(engine: &Arc<Engine>, spec: &PolicySpec) -> Option<Arc<Candidate>> {
    let candidate = spec.candidate.as_deref()?.clone();
    let loaded = async {
        let component = loader::read(&engine.options, &candidate).await?;
        Box::pin(loader::load(engine, candidate, component)).await
    };
    let loaded = loaded.await.map_err(|error| error.kind);
    Some(Arc::new(Candidate::new(spec.name.clone(), loaded)))
}
