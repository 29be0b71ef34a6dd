//! Shared parts of the routes for the service's programs in pods: the check of their credential, and the stream that
//! they follow.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, unfold};
use futures::{Stream, StreamExt as _};
use http::{Extensions, HeaderMap};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::names::spawn_key::SpawnKey;

use crate::auth::bearer;
use crate::connections::{Visitor, Who};
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use wasmspawner_spawner::Labs;

/// A comment that is sent after every 15 s without other data, so that both sides notice a dead connection.
const KEEP_ALIVE: &[u8] = b": still there\n\n";
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Refuses every sender except the program in the pod of this child. The error does not reveal whether there is such a
/// child.
pub(crate) fn check(
    labs: &Labs,
    key: &SpawnKey,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<(), Problem> {
    let token = bearer::token(headers).map_err(Problem::from)?;
    if labs.is_token_of(key, &token) {
        Visitor::authenticated(extensions, Who::Pod);
        return Ok(());
    }
    let msg = format!("this is not the token of the program in the {}'s pod", key.kind().noun());
    Err(Problem::at(&["header", "authorization"], ProblemKind::InvalidToken, msg))
}

/// 503: programs hold the maximum number of connections.
pub(crate) fn too_many() -> Problem {
    let msg = "too many pods are connected; they try again by themselves";
    Problem::new(ProblemKind::TooManyLaunchers, msg).retry_after(5)
}

/// Returns the stream that a program follows, until `frames` or the service ends.
pub(crate) fn stream(
    frames: impl Stream<Item = Bytes> + Send + 'static,
    shutdown: CancellationToken,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    // The first bytes are sent at once, so that the program knows that it is connected.
    let state: (BoxStream<'static, Bytes>, _, _) = (frames.boxed(), shutdown, true);
    unfold(state, |(mut frames, shutdown, is_new)| async move {
        if is_new {
            return Some((Ok(Bytes::from_static(KEEP_ALIVE)), (frames, shutdown, false)));
        }
        let next = timeout(KEEP_ALIVE_EVERY, shutdown.run_until_cancelled(frames.next())).await;
        let bytes = match next {
            Ok(Some(Some(frame))) => frame,
            // Another connection of the child has replaced this one, the child is gone, or the service ends.
            Ok(_) => return None,
            Err(_) => Bytes::from_static(KEEP_ALIVE),
        };
        Some((Ok(bytes), (frames, shutdown, false)))
    })
}
