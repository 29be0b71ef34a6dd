//! Decides a lab again from the request in its Secret: the process that accepted the spawn has gone.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use wasmspawner_core::config::lab::REQUEST_KEY;
use wasmspawner_core::lifecycle::{Failure, Operation};
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::spawn_key::SpawnKind;
use wasmspawner_core::policy::kept_request::KeptRequest;
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::record::{Place, interrupted};
use wasmspawner_core::values::digest::Digest;

use super::approve::{Approved, approve};
use super::user_use::UserUse;
use super::{Decided, Destination, decide_here, remember_volumes};
use crate::context::Context;
use crate::errors::SpawnError;

/// The shortest and the longest pause before policies are asked again that could not answer.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// A spawn that was cut off before its pod was created.
pub(crate) struct CutOff {
    pub(crate) key: LabKey,
    pub(crate) requested_by: String,
    pub(crate) operation: Operation,
    /// The uid of the lab's record.
    pub(crate) spawn: String,
    pub(crate) place: Place,
    /// The digest of the request, as the record has it.
    pub(crate) request: Digest,
}

/// The reason why a spawn does not go on.
enum Ended {
    /// JupyterHub requests the spawn once more; why, for the log.
    Interrupted(String),
    /// The lab cannot be had any more.
    Failed(Failure),
}

/// Decides the lab again. A lab without a Secret, or one that would become another lab than the objects that exist are
/// for, fails as interrupted.
pub(crate) async fn decide_again(
    context: &Context,
    cut_off: &CutOff,
    so_far: UserUse,
    within: Duration,
) -> Result<Decided, Failure> {
    let LabKey { user, server } = &cut_off.key;
    go_on(context, cut_off, so_far, Instant::now() + within).await.map_err(|ended| match ended {
        Ended::Failed(failure) => failure,
        Ended::Interrupted(why) => {
            tracing::warn!(%user, %server, why, "a spawn that was cut off does not go on");
            interrupted(SpawnKind::Lab)
        }
    })
}

async fn go_on(
    context: &Context,
    cut_off: &CutOff,
    so_far: UserUse,
    until: Instant,
) -> Result<Decided, Ended> {
    let ended = |why: &str| Ended::Interrupted(why.to_owned());
    // A process that takes over finds all of them at once, and new spawns beside them.
    let slot = timeout_at(until, context.spawn_slots.acquire()).await;
    let _slot = slot.map_err(|_| ended("no spawn could begin in time"))?;
    let CutOff { key, operation, spawn, place, .. } = cut_off;
    let names = context.names(key).map_err(|error| Ended::Interrupted(error.to_string()))?;
    let creator = context.cluster(place).creator;
    let left = until.saturating_duration_since(Instant::now());
    let found = creator.own_secret(place.namespace.as_str(), names.object.as_str(), spawn, left).await;
    let found = found.map_err(|error| Ended::Interrupted(error.to_string()))?;
    let secret = found.ok_or_else(|| ended("its Secret does not exist"))?;
    let text = secret.data.as_ref().and_then(|data| data.get(REQUEST_KEY));
    let text = text.ok_or_else(|| ended("its Secret has no request"))?;
    let request = KeptRequest::from_secret(text.0.clone())
        .read(operation.job_id, cut_off.request, key.clone(), cut_off.requested_by.clone())
        .map_err(|error| Ended::Interrupted(error.to_string()))?;
    let approved = match approve_again(context, request, so_far, until).await {
        Ok(approved) => approved.bound(place),
        Err(denied @ SpawnError::Denied { .. }) => return Err(Ended::Failed(denied.into_failure())),
        Err(error) => return Err(Ended::Interrupted(error.to_string())),
    };
    if approved.names.pod != place.pod {
        return Err(ended("its pod would have another name"));
    }
    let left = until.saturating_duration_since(Instant::now());
    let decided = decide_here(context, &approved, operation, spawn, left).await.map_err(Ended::Failed)?;
    if !matches!(decided.destination, Destination::OwnPod { .. }) || !decided.objects.fit(&secret) {
        return Err(ended("its policies or the configuration decide otherwise now"));
    }
    remember_volumes(context, &decided).await.map_err(Ended::Failed)?;
    Ok(decided)
}

/// Asks the policies again for permission. Nobody would repeat the request, so policies that cannot answer are asked again,
/// after the pauses that they ask for.
async fn approve_again(
    context: &Context,
    request: SpawnRequest,
    so_far: UserUse,
    until: Instant,
) -> Result<Approved, SpawnError> {
    let mut pause = PAUSE;
    loop {
        let names = context.names(&request.key)?;
        let answer = approve(&context.rules(), names, request.clone(), so_far.clone()).await;
        let wait = match &answer {
            Err(SpawnError::RetryLater(seconds)) => Duration::from_secs((*seconds).into()).max(pause),
            Err(SpawnError::PolicyUnavailable { .. }) => pause,
            _ => return answer,
        };
        if Instant::now() + wait >= until {
            return answer;
        }
        sleep(wait).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
