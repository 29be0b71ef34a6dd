//! Reads both buckets, and what is written there from then on.

use std::pin::Pin;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::stream::{Info, Stream};
use async_nats::{HeaderValue, Message};
use futures::stream::{Stream as Sequence, StreamExt, select};

use super::connection::Connection;
use super::error::NatsError;
use super::fence::{WRITER_HEADER, WriterNumber};
use super::key::{Bucket, Key};

/// The header of an entry that only says that its key was deleted.
const OPERATION_HEADER: &str = "KV-Operation";

/// An entry of one of the buckets.
pub(super) struct Stored {
    /// The bucket.
    pub(super) bucket: Bucket,
    /// The key; `None` for one that others have written, and for those that are not read back.
    pub(super) key: Option<Key>,
    /// The value; `None` once the key was deleted.
    pub(super) value: Option<Vec<u8>>,
    /// The version of the entry.
    pub(super) revision: u64,
    /// The process that has written it.
    pub(super) writer: WriterNumber,
}

type Entries = Pin<Box<dyn Sequence<Item = Result<Stored, NatsError>> + Send>>;

/// Reads both buckets.
pub(super) struct Follower {
    entries: Entries,
    /// The number of entries that were there at the beginning and are not read yet.
    behind: u64,
}

impl Follower {
    pub(super) async fn start(connection: &Connection) -> Result<Self, NatsError> {
        let (jobs, of_jobs) = follow(connection, &connection.jobs, Bucket::Jobs).await?;
        let (usage, of_usage) = follow(connection, &connection.usage, Bucket::Usage).await?;
        Ok(Self { entries: Box::pin(select(jobs, usage)), behind: of_jobs + of_usage })
    }

    /// True once everything was read that was there at the beginning.
    pub(super) fn is_current(&self) -> bool {
        self.behind == 0
    }

    /// Waits for the next entry.
    pub(super) async fn next(&mut self) -> Result<Stored, NatsError> {
        let ended = || NatsError::jetstream("follow the buckets", "the server has ended it");
        let stored = self.entries.next().await.ok_or_else(ended)??;
        self.behind = self.behind.saturating_sub(1);
        Ok(stored)
    }
}

async fn follow(
    connection: &Connection,
    stream: &Stream<Info>,
    bucket: Bucket,
) -> Result<(Entries, u64), NatsError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        NatsError::jetstream("follow the buckets", super::error::with_causes(error))
    };
    let config = OrderedConfig {
        deliver_subject: connection.client.new_inbox(),
        deliver_policy: DeliverPolicy::LastPerSubject,
        filter_subject: connection.subjects(bucket),
        ..OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(|error| failed(&error))?;
    let behind = consumer.cached_info().num_pending;
    let messages = consumer.messages().await.map_err(|error| failed(&error))?;
    let connection = connection.clone();
    let entries = messages.map(move |message| {
        let message = message.map_err(|error| failed(&error))?;
        let revision = message.info().map_err(|error| NatsError::jetstream("follow the buckets", error))?;
        let revision = revision.stream_sequence;
        Ok(stored(&connection, bucket, &message.message, revision))
    });
    Ok((Box::pin(entries), behind))
}

fn stored(connection: &Connection, bucket: Bucket, message: &Message, revision: u64) -> Stored {
    let headers = message.headers.as_ref();
    let is_deleted = headers.is_some_and(|headers| headers.get(OPERATION_HEADER).is_some());
    let writer = headers.and_then(|headers| headers.get(WRITER_HEADER));
    Stored {
        bucket,
        key: connection.key(&message.subject),
        value: (!is_deleted).then(|| message.payload.to_vec()),
        revision,
        writer: WriterNumber::parse(writer.map(HeaderValue::as_str)),
    }
}
