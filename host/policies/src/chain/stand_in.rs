//! A kept version of a policy, which answers because the configured one could not be loaded when the service started.

use std::sync::Arc;

use bytes::Bytes;
use wasmspawner_core::config::OnFailure;

use super::last_good::load;
use crate::engine::Engine;
use crate::errors::LoadError;
use crate::limits::patience::Patience;
use crate::policy::Policy;
use crate::reports::version_record::VersionRecord;
use crate::signature::{Trust, TrustedKeys};
use crate::source::spec::PolicySpec;

/// The policy that a kept version stands in for.
pub(crate) struct StandIn {
    /// The policy as the configuration has it.
    pub(crate) configured: PolicySpec,
    /// The reason that it could not be loaded.
    pub(crate) error: LoadError,
}

impl StandIn {
    /// Returns the version that was in use, which stands in for a policy that cannot be loaded when the service starts, with its
    /// record and its component. Without one, returns the error of that policy.
    pub(super) async fn find(
        spec: PolicySpec,
        error: LoadError,
        engine: &Arc<Engine>,
        patience: &Patience,
    ) -> Result<(Policy, Self, (VersionRecord, Bytes)), LoadError> {
        let falls_back = spec.on_failure == OnFailure::LastGood;
        let Some(records) = engine.versions.as_ref().filter(|_| falls_back) else { return Err(error) };
        let Some(record) = records.record(&spec.name) else { return Err(error) };
        let keys = spec.signed_by.as_deref().map(TrustedKeys::read).transpose();
        let Ok(keys) = keys else { return Err(error) };
        let trust = Trust::new(keys.map(Arc::new), None);
        let version = &record.in_use;
        if !trust.includes(version.key.as_ref()) {
            return Err(error);
        }
        let loaded = Box::pin(load(version, (&spec, &trust), engine, patience)).await;
        let Some((policy, bytes)) = loaded else { return Err(error) };
        tracing::error!(%error, digest = %policy.digest, "the policy cannot be loaded; the version that was in use stands in for it");
        policy.note_error(format!("stands in for a version that is not loaded: {}", error.kind));
        Ok((policy, Self { configured: spec, error }, (record, bytes)))
    }
}
