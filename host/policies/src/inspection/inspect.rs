//! Inspects a component, before it has a configuration.

use std::sync::Arc;

use bytes::Bytes;

use crate::chain::FailedPolicies;
use crate::contract::hooks::metadata::ConfigSchema;
use crate::engine::{Engine, EngineOptions};
use crate::errors::LoadError;
use crate::limits::patience::Patience;
use crate::policy::loader;
use crate::reports::loaded_policy::LoadedPolicy;
use crate::source::spec::PolicySpec;

/// The description of an inspected policy.
#[derive(Clone, Debug)]
pub struct InspectedPolicy {
    /// The policy's description of itself.
    pub policy: LoadedPolicy,
    /// The interfaces that the component imports.
    pub imports: Vec<String>,
    /// The interfaces that the component exports.
    pub exports: Vec<String>,
    /// The component itself.
    pub component: Bytes,
    /// The JSON Schema of the configuration.
    pub config_schema: String,
}

/// Checks the component of a policy, and reads its description. Does not check its configuration.
///
/// # Errors
///
/// If the component is not a policy.
pub async fn inspect(spec: PolicySpec, options: EngineOptions) -> Result<InspectedPolicy, FailedPolicies> {
    let engine = Arc::new(Engine::new(options)?);
    let component = loader::read(&engine.options, &spec).await?;
    let (name, patience) = (spec.name.clone(), Patience::default());
    let failed = |kind| LoadError { policy: name.clone(), kind };
    let policy = loader::described(&engine, spec, &component.bytes, &patience).await.map_err(failed)?;
    let config_schema = patience.ask(|| policy.asked(&engine, &ConfigSchema)).await;
    let config_schema = config_schema.map_err(|error| failed(loader::trial(error)))?.unwrap_or_default();
    let ty = policy.component_type();
    Ok(InspectedPolicy {
        policy: policy.loaded(),
        imports: ty.imports(&engine.wasm).map(|(name, _)| name.to_owned()).collect(),
        exports: ty.exports(&engine.wasm).map(|(name, _)| name.to_owned()).collect(),
        component: component.bytes,
        config_schema,
    })
}
