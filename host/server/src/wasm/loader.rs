use std::path::{Path, PathBuf};
use std::sync::Arc;

use wasmspawner_core::form::FormContext;
use wasmspawner_core::policy::User;
use wasmspawner_core::quota::Usage;

use super::cache;
use super::digest::Digest;
use super::engine::Engine;
use super::errors::{CallBlame, CallError, CallErrorKind, LoadError, LoadErrorKind};
use super::package_versions;
use super::policy::Policy;
use super::spec::PolicySpec;

/// Loads and checks a policy from its file. The chain in use is not changed.
pub(super) async fn load(engine: &Arc<Engine>, spec: PolicySpec) -> Result<Policy, LoadError> {
    let policy = spec.name.clone();
    checked(engine, spec).await.map_err(|kind| LoadError { policy, kind })
}

async fn checked(engine: &Arc<Engine>, spec: PolicySpec) -> Result<Policy, LoadErrorKind> {
    let bytes = read(&component_file(&spec.path)?, engine.options.component_bytes)?;
    let digest = pinned(&spec, &bytes)?;
    let component = cache::compiled(engine, &digest, bytes).await?;
    let version = package_versions::of(&component, &engine.wasm)?;
    let mut policy = Policy::new(spec, digest, engine, &component, version)?;
    policy.check_types(engine).await.map_err(trial)?;
    let info = policy.describe(engine).await.map_err(trial)?;
    policy.set_info(info);
    check_config(engine, &policy).await?;
    try_hooks(engine, &policy).await.map_err(trial)?;
    Ok(policy)
}

fn component_file(path: &Path) -> Result<PathBuf, LoadErrorKind> {
    let read = |source| LoadErrorKind::Read { path: path.to_owned(), source };
    if !path.metadata().map_err(read)?.is_dir() {
        return Ok(path.to_owned());
    }
    let mut components = Vec::new();
    for entry in path.read_dir().map_err(read)? {
        let file = entry.map_err(read)?.path();
        if file.extension().is_some_and(|extension| extension == "wasm") {
            components.push(file);
        }
    }
    match <[PathBuf; 1]>::try_from(components) {
        Ok([file]) => Ok(file),
        Err(components) => {
            Err(LoadErrorKind::AmbiguousDirectory { path: path.to_owned(), found: components.len() })
        }
    }
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, LoadErrorKind> {
    let read = |source| LoadErrorKind::Read { path: path.to_owned(), source };
    let size = path.metadata().map_err(read)?.len();
    if size > limit {
        return Err(LoadErrorKind::TooLarge { path: path.to_owned(), size, limit });
    }
    std::fs::read(path).map_err(read)
}

fn pinned(spec: &PolicySpec, bytes: &[u8]) -> Result<Digest, LoadErrorKind> {
    let actual = Digest::of(bytes);
    match &spec.digest {
        Some(pinned) if *pinned != actual => {
            Err(LoadErrorKind::DigestMismatch { pinned: pinned.hex(), actual: actual.hex() })
        }
        _ => Ok(actual),
    }
}

async fn check_config(engine: &Engine, policy: &Policy) -> Result<(), LoadErrorKind> {
    let empty = policy.spec.config.as_object().is_some_and(serde_json::Map::is_empty);
    if !policy.takes_config() && !empty {
        return Err(LoadErrorKind::ConfigNotTaken);
    }
    let warnings = policy.validate(engine).await.map_err(|error| match error.kind {
        CallErrorKind::Invalid(problems) => LoadErrorKind::Config(problems),
        other => LoadErrorKind::Trial(other),
    })?;
    for warning in warnings {
        tracing::warn!(policy = %policy.name(), warning, "the policy's configuration");
    }
    Ok(())
}

/// Calls the hooks with a user who does not exist. The policy may refuse that user, but must not fail.
async fn try_hooks(engine: &Engine, policy: &Policy) -> Result<(), CallError> {
    let nobody = User { name: "policy-trial".into(), ..User::default() };
    let context = FormContext { user: nobody.clone(), ..FormContext::default() };
    let form = policy.render_form(engine, &context).await.map(|answer| answer.map(drop));
    let quota = policy.limits(engine, &nobody, Usage::default()).await.map(|answer| answer.map(drop));
    match form.into_iter().chain(quota).find_map(Result::err) {
        Some(error) if error.kind.blame() != CallBlame::Request => Err(error),
        _ => Ok(()),
    }
}

fn trial(error: CallError) -> LoadErrorKind {
    LoadErrorKind::Trial(error.kind)
}
