//! Writes one change, unless a later leader has written the same key.

use std::error::Error as _;

use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID};
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{Info, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;
use uuid::Uuid;

use super::connection::Connection;
use super::error::NatsError;
use super::fence::{WRITER_HEADER, WriterNumber};
use super::key::{Bucket, Key};
use super::queue::Ticket;

/// How often a key is read again that somebody else changes.
const ATTEMPTS: usize = 4;

/// The fate of one change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It is stored, with this version.
    At(u64),
    /// A later leader has written the key, so it stays as it is.
    Superseded,
    /// NATS does not take so large an entry.
    TooLarge,
}

/// Writes what the process that leads knows.
pub(super) struct Writer {
    pub(super) connection: Connection,
    number: WriterNumber,
    /// Identifies this process in the ids of messages.
    process: Uuid,
}

impl Writer {
    pub(super) fn new(connection: Connection, number: WriterNumber) -> Self {
        Self { connection, number, process: Uuid::new_v4() }
    }

    /// Replaces the value of a key, which last had the version `known`. An empty value says that it is deleted.
    pub(super) async fn put(
        &self,
        key: &Key,
        value: Option<Bytes>,
        known: u64,
    ) -> Result<Written, NatsError> {
        let bucket = key.bucket();
        let subject = self.connection.subject(bucket, key);
        let stream = match bucket {
            Bucket::Jobs => &self.connection.jobs,
            Bucket::Usage => &self.connection.usage,
        };
        let mut expected = known;
        for _ in 0..ATTEMPTS {
            let mut headers = self.headers();
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string().as_str());
            if value.is_none() {
                headers.insert("KV-Operation", "DEL");
            }
            let payload = value.clone().unwrap_or_default();
            match self.publish(subject.clone(), headers, payload).await {
                Ok(revision) => return Ok(Written::At(revision)),
                Err(error) => match error.kind() {
                    PublishErrorKind::WrongLastSequence => {
                        let (revision, writer) = last(stream, &subject).await?;
                        if !self.number.may_replace(writer) {
                            return Ok(Written::Superseded);
                        }
                        expected = revision;
                    }
                    _ if is_too_large(&error) => return Ok(Written::TooLarge),
                    _ => return Err(NatsError::jetstream(format!("write {}", key.name()), error)),
                },
            }
        }
        Err(NatsError::jetstream(format!("write {}", key.name()), "somebody else changes it again and again"))
    }

    /// Adds a message to the stream of events. One that was added already is not added again.
    pub(super) async fn add(
        &self,
        subject: String,
        ticket: Ticket,
        message: Bytes,
    ) -> Result<Written, NatsError> {
        let mut headers = self.headers();
        headers.insert(NATS_MESSAGE_ID, format!("{}-{ticket}", self.process).as_str());
        match self.publish(subject, headers, message).await {
            Ok(sequence) => Ok(Written::At(sequence)),
            Err(error) if is_too_large(&error) => Ok(Written::TooLarge),
            Err(error) => Err(NatsError::jetstream("add an event", error)),
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(WRITER_HEADER, self.number.0.to_string().as_str());
        headers
    }

    async fn publish(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<u64, PublishError> {
        let answer = self.connection.jetstream.publish_with_headers(subject, headers, payload).await?;
        Ok(answer.await?.sequence)
    }
}

/// True if the entry is larger than the server (`max_payload`) or the stream (`max_msg_size`) takes.
fn is_too_large(error: &PublishError) -> bool {
    let answer = error.source().and_then(|answer| answer.downcast_ref::<jetstream::Error>());
    error.kind() == PublishErrorKind::MaxPayloadExceeded
        || answer.is_some_and(|answer| answer.error_code() == ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM)
}

/// Reads the version and the writer of the last entry of a subject. Without one, the version is 0.
async fn last(stream: &Stream<Info>, subject: &str) -> Result<(u64, WriterNumber), NatsError> {
    match stream.get_last_raw_message_by_subject(subject).await {
        Ok(message) => {
            let writer = message.headers.get(WRITER_HEADER);
            Ok((message.sequence, WriterNumber::parse(writer.map(HeaderValue::as_str))))
        }
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
            Ok((0, WriterNumber::default()))
        }
        Err(error) => Err(NatsError::jetstream(format!("read {subject}"), error)),
    }
}
