//! `on_failure: last-good`: an earlier version of a policy that answers if the policy fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::engine::Engine;
use crate::limits::patience::Patience;
use crate::policy::Policy;
use crate::policy::loader;
use crate::reports::loaded_policy::{LastGoodReport, LoadedPolicy};
use crate::reports::version_record::{Version, VersionRecord};
use crate::signature::Trust;
use crate::source::component_source::{Component, ComponentSource};
use crate::source::spec::PolicySpec;

/// An earlier version of a policy, which answers if the policy fails.
pub(crate) struct LastGood {
    pub(crate) policy: Policy,
    answers: AtomicU64,
}

impl LastGood {
    /// Gives `good` the grants and limits of `next`, the policy that replaces it. Returns `None` if that is not
    /// possible.
    pub(crate) fn before(next: &Policy, good: &Policy, engine: &Engine) -> Option<Self> {
        if !next.trust.includes(good.trust.key().as_ref()) {
            return None;
        }
        match good.under(&next.spec, engine) {
            Ok(policy) => Some(Self { policy, answers: AtomicU64::default() }),
            Err(error) => {
                tracing::warn!(policy = %next.name(), %error, "the last good version of the policy cannot be kept");
                None
            }
        }
    }

    /// Returns the last good version in the record, and the policy loaded from it.
    pub(crate) async fn recorded(
        record: Option<VersionRecord>,
        next: &Policy,
        engine: &Arc<Engine>,
        patience: &Patience,
    ) -> (Option<Version>, Option<Self>) {
        let version = record.and_then(|record| record.last_good_for(&next.recorded()));
        let Some(version) = version.filter(|version| next.trust.includes(version.key.as_ref())) else {
            return (None, None);
        };
        let loaded = load(&version, (&next.spec, &next.trust), engine, patience).await;
        (Some(version), loaded.map(|(policy, _)| Self { policy, answers: AtomicU64::default() }))
    }

    /// Counts an answer.
    pub(crate) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> LastGoodReport {
        let LoadedPolicy { version, digest, signed_by, .. } = self.policy.loaded();
        let answers = self.answers.load(Ordering::Relaxed);
        LastGoodReport { version, digest: digest.to_string(), signed_by, answers }
    }
}

/// Loads a recorded version, with the grants and limits of the policy as it is configured now.
pub(super) async fn load(
    version: &Version,
    (spec, trust): (&PolicySpec, &Trust),
    engine: &Arc<Engine>,
    patience: &Patience,
) -> Option<(Policy, Bytes)> {
    let records = engine.versions.as_ref()?;
    let Some(bytes) = records.component(version) else {
        tracing::warn!(policy = %spec.name, "the component of the policy's last good version is not there, or damaged");
        return None;
    };
    let recorded = PolicySpec {
        source: ComponentSource::File(records.component_file(&version.component)),
        digest: Some(version.component),
        config: version.config.clone(),
        data: version.data.clone(),
        candidate: None,
        ..spec.clone()
    };
    let component = Component::recorded(bytes.clone(), trust.for_key(version.key.as_ref()));
    let loaded = Box::pin(loader::load(engine, recorded, component, patience)).await;
    let warn = |error: &_| tracing::warn!(policy = %spec.name, %error, "the last good version of the policy cannot be loaded now");
    Some((loaded.inspect_err(warn).ok()?, bytes))
}
