//! Decides a lab again from the request in its Secret: the process that accepted the spawn has gone.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use wasmspawner_core::config::lab::REQUEST_KEY;
use wasmspawner_core::lifecycle::{Failure, Operation};
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::policy::kept_request::KeptRequest;
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::record::{Place, interrupted};
use wasmspawner_core::values::digest::Digest;

use super::approve::{Approved, approve};
use super::user_use::UserUse;
use super::{Decided, Destination, decide};
use crate::context::Context;
use crate::errors::{SpawnError, failure};

/// The pause before policies are asked once more that could not answer.
const PAUSE: Duration = Duration::from_secs(1);

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

/// Decides the lab again. A lab without a Secret, or one that would become another lab than the objects that exist are
/// for, fails as interrupted.
pub(crate) async fn decide_again(
    context: &Context,
    cut_off: &CutOff,
    so_far: UserUse,
    within: Duration,
) -> Result<Decided, Failure> {
    let until = Instant::now() + within;
    let CutOff { key, operation, spawn, place, .. } = cut_off;
    let again = |why: &str| {
        tracing::info!(user = %key.user, server = %key.server, why, "a spawn that was cut off cannot go on");
        interrupted(wasmspawner_core::names::spawn_key::SpawnKind::Lab)
    };
    let names = context.names(key).map_err(|error| SpawnError::from(error).into_failure())?;
    let (namespace, name) = (place.namespace.as_str(), names.object.as_str());
    let creator = context.cluster(place).creator;
    let found = creator.own_secret(namespace, name, spawn, within).await.map_err(|error| failure(&error))?;
    let Some(secret) = found else { return Err(again("its Secret does not exist")) };
    let text = secret.data.as_ref().and_then(|data| data.get(REQUEST_KEY));
    let Some(text) = text else { return Err(again("its Secret has no request")) };
    let request = KeptRequest::from_secret(text.0.clone()).read(
        operation.job_id,
        cut_off.request,
        key.clone(),
        cut_off.requested_by.clone(),
    );
    let request = request.map_err(|error| again(&error.to_string()))?;
    let approved = approve_again(context, request, so_far, until).await.map_err(SpawnError::into_failure)?;
    let approved = approved.bound(place);
    if approved.names.pod != place.pod {
        return Err(again("its pod would have another name"));
    }
    let within = until.saturating_duration_since(Instant::now());
    let decided = decide(context, &approved, operation, spawn, within).await?;
    match &decided.destination {
        Destination::OwnPod { .. } if decided.objects.fit(&secret) => Ok(decided),
        _ => Err(again("its policies or the configuration decide otherwise now")),
    }
}

/// Asks the policies again for permission. Nobody would repeat the request, so policies that cannot answer are asked once
/// more.
async fn approve_again(
    context: &Context,
    request: SpawnRequest,
    so_far: UserUse,
    until: Instant,
) -> Result<Approved, SpawnError> {
    loop {
        let names = context.names(&request.key)?;
        match approve(&context.rules(), names, request.clone(), so_far.clone()).await {
            Err(SpawnError::PolicyUnavailable { .. } | SpawnError::RetryLater(_))
                if Instant::now() + PAUSE < until =>
            {
                sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}
