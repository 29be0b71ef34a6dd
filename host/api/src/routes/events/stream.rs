//! Sends the events of an operation as a stream of bytes.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use futures::stream::unfold;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::frame;
use crate::fair_use::UserSlot;
use wasmspawner_core::lifecycle::progress::{Entry, LoggedEntry};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_spawner::EventReader;
use wasmspawner_telemetry::SseReader;

/// The first bytes of every stream: the number of milliseconds after which a client reconnects if the connection
/// breaks.
const GREETING: &str = "retry: 1000\n\n";
/// A comment that is sent after every 15 s without an event, so that no proxy closes the connection as idle.
const KEEP_ALIVE: &str = ": still there\n\n";
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);

/// The parts of a stream that are no events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// The first bytes, sent at once.
    pub(crate) greeting: Option<&'static str>,
    /// The comment that is sent after every 15 s without an event.
    pub(crate) keep_alive: &'static str,
}

/// The format of this API.
const OWN: Format = Format { greeting: Some(GREETING), keep_alive: KEEP_ALIVE };

struct StreamState<W> {
    reader: EventReader,
    /// Appends the event for an entry.
    write: W,
    keep_alive: &'static str,
    shutdown: CancellationToken,
    /// The greeting, until it is sent together with the first events.
    greeting: Option<&'static str>,
    /// Guards that count this reader in the metrics, and among the user's readers, while the stream exists.
    _counted: (SseReader, Option<UserSlot>),
}

/// Returns the bytes of a stream, until the operation is over or the service stops. Entries are read from the log only
/// when the connection has room for them: a slow reader costs a position in the log and no other memory. `url_of` has the
/// URL of what an operation has started.
pub(crate) fn follow<U>(
    reader: EventReader,
    url_of: U,
    counted: (SseReader, Option<UserSlot>),
    shutdown: CancellationToken,
) -> impl Stream<Item = Result<Bytes, Infallible>>
where
    U: Fn(JobId) -> Option<String>,
{
    let write = move |frames: &mut String, job_id, logged: &LoggedEntry| {
        let complete = matches!(logged.entry, Entry::Complete(_));
        let url = if complete { url_of(job_id) } else { None };
        frame::write(frames, job_id, logged, url.as_deref());
    };
    follow_as(reader, OWN, write, counted, shutdown)
}

/// Like [`follow`], in another format. `write` appends the event for an entry.
pub(crate) fn follow_as<W>(
    reader: EventReader,
    Format { greeting, keep_alive }: Format,
    write: W,
    counted: (SseReader, Option<UserSlot>),
    shutdown: CancellationToken,
) -> impl Stream<Item = Result<Bytes, Infallible>>
where
    W: FnMut(&mut String, JobId, &LoggedEntry),
{
    let state = StreamState { reader, write, keep_alive, shutdown, greeting, _counted: counted };
    unfold(state, |mut state| async {
        let bytes = state.next().await?;
        Some((Ok(bytes), state))
    })
}

impl<W: FnMut(&mut String, JobId, &LoggedEntry)> StreamState<W> {
    async fn next(&mut self) -> Option<Bytes> {
        // The greeting is sent without waiting for an event, so that the client knows at once that it is connected.
        let wait = if self.greeting.is_some() { Duration::ZERO } else { KEEP_ALIVE_EVERY };
        let entries = timeout(wait, self.shutdown.run_until_cancelled(self.reader.next())).await;
        let greeting = self.greeting.take();
        match entries {
            Ok(Some(Some(entries))) => {
                let mut frames = greeting.unwrap_or_default().to_owned();
                let job_id = self.reader.job_id();
                for logged in &entries {
                    (self.write)(&mut frames, job_id, logged);
                }
                Some(frames.into())
            }
            Ok(_) => greeting.map(Bytes::from),
            Err(_) => Some(Bytes::from_static(greeting.unwrap_or(self.keep_alive).as_bytes())),
        }
    }
}
