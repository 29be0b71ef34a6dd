use std::sync::Arc;

use wasmspawner_core::policy::form::FormContext;
use wasmspawner_core::policy::{Subject, User};
use wasmspawner_core::users::quota::Usage;

use super::Policy;
use super::prepared::{NotPrepared, prepared};
use crate::contract::hooks::config::Validate;
use crate::contract::hooks::form::RenderForm;
use crate::contract::hooks::images::OfferImages;
use crate::contract::hooks::metadata::Describe;
use crate::contract::hooks::quota::LimitUser;
use crate::contract::package;
use crate::engine::{Engine, EngineOptions};
use crate::errors::{CallBlame, CallError, CallErrorKind, LoadError, LoadErrorKind};
use crate::limits::patience::Patience;
use crate::reports::loaded_policy::Preparation;
use crate::signature::TrustedKeys;
use crate::site_data::LiveData;
use crate::source::cache;
use crate::source::component_source::Component;
use crate::source::spec::PolicySpec;
use wasmspawner_core::values::digest::Digest;

/// Reads the component of a policy.
pub(crate) async fn read(options: &EngineOptions, spec: &PolicySpec) -> Result<Component, LoadError> {
    let read = async {
        let keys = spec.signed_by.as_deref().map(TrustedKeys::read).transpose();
        let keys = keys.map_err(LoadErrorKind::WrongKey)?.map(Arc::new);
        spec.source.read(spec.digest.as_ref(), keys.as_ref(), options).await
    };
    read.await.map_err(|kind| LoadError { policy: spec.name.clone(), kind })
}

/// Loads and checks a policy. The chain in use is not changed.
pub(crate) async fn load(
    engine: &Arc<Engine>,
    spec: PolicySpec,
    component: Component,
    patience: &Patience,
) -> Result<Policy, LoadError> {
    let policy = spec.name.clone();
    let loaded = checked(engine, spec, &component.bytes, patience).await;
    let mut loaded = loaded.map_err(|kind| LoadError { policy, kind })?;
    loaded.set_trust(component.trust.clone());
    component.keep();
    Ok(loaded)
}

async fn checked(
    engine: &Arc<Engine>,
    spec: PolicySpec,
    bytes: &[u8],
    patience: &Patience,
) -> Result<Policy, LoadErrorKind> {
    let policy = described(engine, spec, bytes, patience).await?;
    check_required_hooks(&policy)?;
    check_config(engine, &policy, patience).await?;
    patience.ask(|| try_hooks(engine, &policy)).await.map_err(trial)?;
    Ok(prepared_if_possible(engine, policy, bytes, patience).await)
}

fn check_required_hooks(policy: &Policy) -> Result<(), LoadErrorKind> {
    let has = policy.loaded().hooks;
    let missing = policy.spec.requires.iter().map(|hook| hook.as_str()).find(|hook| !has.contains(hook));
    missing.map_or(Ok(()), |missing| Err(LoadErrorKind::MissingHook { missing, has }))
}

/// Loads a policy, checks its types, and reads its description of itself.
pub(crate) async fn described(
    engine: &Arc<Engine>,
    spec: PolicySpec,
    bytes: &[u8],
    patience: &Patience,
) -> Result<Policy, LoadErrorKind> {
    let digest = pinned(&spec, bytes)?;
    check_header(bytes)?;
    let component = cache::compiled(engine, &digest, bytes).await?;
    package::check(&component, &engine.wasm)?;
    let data = LiveData::read(&spec.data, &engine.documents).await?;
    let mut policy = Policy::new(spec, digest, engine, &component)?;
    policy.set_data(data);
    patience.ask(|| policy.check_types(engine)).await.map_err(trial)?;
    let info = patience.ask(|| policy.asked(engine, &Describe)).await.map_err(trial)?;
    policy.set_info(info.unwrap_or_default());
    Ok(policy)
}

/// Returns the policy with prepared memory: its calls begin with the memory that the component has after `prepare`.
/// Returns the same policy if that is not possible.
async fn prepared_if_possible(
    engine: &Arc<Engine>,
    mut policy: Policy,
    bytes: &[u8],
    patience: &Patience,
) -> Policy {
    if !engine.options.prepare || !policy.can_be_prepared() {
        return policy;
    }
    match prepared_copy(engine, &policy, bytes, patience).await {
        Ok(mut copy) => {
            copy.set_preparation(Preparation { prepared: true, not_prepared: None });
            copy
        }
        Err(reason) => {
            tracing::warn!(policy = %policy.name(), %reason, "the policy is not prepared for its calls, which works, but slower");
            policy.set_preparation(Preparation { prepared: false, not_prepared: Some(reason.to_string()) });
            policy
        }
    }
}

/// Creates the prepared policy, and makes the same checks of it.
async fn prepared_copy(
    engine: &Arc<Engine>,
    policy: &Policy,
    bytes: &[u8],
    patience: &Patience,
) -> Result<Policy, NotPrepared> {
    let component = prepared(engine, policy, bytes, patience).await?;
    let copy = policy.with(engine, &component)?;
    patience.ask(|| copy.check_types(engine)).await?;
    patience.ask(|| try_hooks(engine, &copy)).await?;
    Ok(copy)
}

/// Rejects files that are not components by their first bytes, because the compiler's messages about them are of no
/// help.
fn check_header(bytes: &[u8]) -> Result<(), LoadErrorKind> {
    match bytes.strip_prefix(b"\0asm") {
        None => Err(LoadErrorKind::NotWebAssembly),
        Some([1, 0, 0, 0, ..]) => Err(LoadErrorKind::CoreModule),
        Some(_) => Ok(()),
    }
}

fn pinned(spec: &PolicySpec, bytes: &[u8]) -> Result<Digest, LoadErrorKind> {
    let actual = Digest::sha256(bytes);
    match &spec.digest {
        Some(pinned) if *pinned != actual => {
            Err(LoadErrorKind::DigestMismatch { pinned: pinned.hex(), actual: actual.hex() })
        }
        _ => Ok(actual),
    }
}

async fn check_config(engine: &Engine, policy: &Policy, patience: &Patience) -> Result<(), LoadErrorKind> {
    let empty = policy.spec.config.as_object().is_some_and(serde_json::Map::is_empty);
    if !policy.answers::<Validate>() && !empty {
        return Err(LoadErrorKind::ConfigNotTaken);
    }
    let question = Validate(Arc::clone(&policy.config));
    let warnings =
        patience.ask(|| policy.asked(engine, &question)).await.map_err(|error| match error.kind {
            CallErrorKind::Invalid(problems) => LoadErrorKind::Config(problems),
            other => LoadErrorKind::Trial(other),
        })?;
    for warning in warnings.unwrap_or_default() {
        tracing::warn!(policy = %policy.name(), warning, "the policy's configuration");
    }
    Ok(())
}

/// Calls the hooks with a user who does not exist. The policy may deny the request of that user, but must not fail.
async fn try_hooks(engine: &Engine, policy: &Policy) -> Result<(), CallError> {
    let nobody = User { name: "policy-trial".into(), ..User::default() };
    let context = FormContext { user: nobody.clone(), ..FormContext::default() };
    let limits = LimitUser { user: nobody, usage: Usage::default(), subject: Subject::default() };
    let form = policy.ask(engine, &RenderForm::first(context.clone())).await.map(|answer| answer.map(drop));
    let quota = policy.ask(engine, &limits).await.map(|answer| answer.map(drop));
    let menu = policy.ask(engine, &OfferImages(context)).await.map(|answer| answer.map(drop));
    let errors = form.into_iter().chain(quota).chain(menu).filter_map(Result::err);
    let failures = errors.filter(|error| error.kind.blame() != CallBlame::Request);
    // Errors that will occur again come before overloads, which may not.
    failures.min_by_key(|error| error.kind.is_overload()).map_or(Ok(()), Err)
}

pub(crate) fn trial(error: CallError) -> LoadErrorKind {
    LoadErrorKind::Trial(error.kind)
}
