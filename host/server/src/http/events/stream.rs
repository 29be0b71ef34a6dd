//! Following a log as a stream of bytes.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use futures::stream::unfold;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::frame;
use crate::spawner::EventReader;
use crate::telemetry::SseReader;

/// What a reader gets first: how soon to come back when the connection breaks, in milliseconds.
const FIRST: &str = "retry: 1000\n\n";
/// What a reader gets when nothing happens, so that no proxy between takes the connection for dead.
const STILL_THERE: &str = ": still there\n\n";
const PAUSE: Duration = Duration::from_secs(15);

struct Follower {
    reader: EventReader,
    shutdown: CancellationToken,
    /// Goes out together with the first events.
    greeting: Option<&'static str>,
    /// Counts this reader while the stream lives.
    _counted: SseReader,
}

/// The bytes that a reader is sent, until the operation is over or the service stops. The next entries are taken from
/// the log when the connection has room for them: a slow reader holds a place in the log, and nothing else.
pub(super) fn follow(
    reader: EventReader,
    counted: SseReader,
    shutdown: CancellationToken,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let follower = Follower { reader, shutdown, greeting: Some(FIRST), _counted: counted };
    unfold(follower, |mut follower| async {
        let bytes = follower.next().await?;
        Some((Ok(bytes), follower))
    })
}

impl Follower {
    async fn next(&mut self) -> Option<Bytes> {
        // The greeting does not wait for the first event: until it arrives, a client does not know that it is heard.
        let wait = if self.greeting.is_some() { Duration::ZERO } else { PAUSE };
        let entries = timeout(wait, self.shutdown.run_until_cancelled(self.reader.next())).await;
        let greeting = self.greeting.take();
        match entries {
            Ok(Some(Some(entries))) => {
                let mut frames = greeting.unwrap_or_default().to_owned();
                for entry in &entries {
                    frame::write(&mut frames, self.reader.job_id(), entry);
                }
                Some(frames.into())
            }
            Ok(_) => greeting.map(Bytes::from),
            Err(_) => Some(Bytes::from_static(greeting.unwrap_or(STILL_THERE).as_bytes())),
        }
    }
}
