//! The connection to NATS, and the buckets and the stream there.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{AuthError, Client, ConnectOptions};
use wasmspawner_core::config::{Nats, NatsName, NatsServer};

use super::error::{NatsError, with_causes};
use super::key::{Bucket, Key};
use super::login;

/// The time for a connection to one server.
const CONNECT: Duration = Duration::from_secs(5);

/// The time for the answer to one request.
pub(super) const ANSWER: Duration = Duration::from_secs(5);

/// A server that does not answer two of these pings is gone.
const PING_EVERY: Duration = Duration::from_secs(10);

/// An open connection.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) jetstream: Context,
    pub(super) jobs: Stream<Info>,
    pub(super) usage: Stream<Info>,
    nats: Arc<Nats>,
}

impl Connection {
    /// Connects, and makes what is missing there.
    pub(super) async fn open(nats: &Arc<Nats>, instance: &str, span: Duration) -> Result<Self, NatsError> {
        let client = connect(nats, instance).await?;
        let jetstream = context(&client);
        let Nats { jobs_bucket, usage_bucket, stream, replicas, .. } = &**nats;
        let maker = StreamMaker { jetstream: &jetstream, instance, replicas: usize::from(*replicas) };
        let jobs = maker.open("jobs_bucket", bucket(jobs_bucket, span)).await?;
        let usage = maker.open("usage_bucket", bucket(usage_bucket, Duration::ZERO)).await?;
        maker.open("stream", events(stream, span)).await?;
        Ok(Self { client, jetstream, jobs, usage, nats: Arc::clone(nats) })
    }

    /// The subject by which a key is written and read.
    pub(super) fn subject(&self, bucket: Bucket, key: &Key) -> String {
        format!("{}{}", prefix(self.name(bucket)), key.name())
    }

    /// The subjects of all keys of a bucket.
    pub(super) fn subjects(&self, bucket: Bucket) -> String {
        format!("{}>", prefix(self.name(bucket)))
    }

    fn name(&self, bucket: Bucket) -> &NatsName {
        match bucket {
            Bucket::Jobs => &self.nats.jobs_bucket,
            Bucket::Usage => &self.nats.usage_bucket,
        }
    }

    /// The key that is written by this subject.
    pub(super) fn key(&self, subject: &str) -> Option<Key> {
        let names = [&self.nats.jobs_bucket, &self.nats.usage_bucket];
        let name = names.into_iter().find_map(|name| subject.strip_prefix(&prefix(name)))?;
        Key::parse(name)
    }

    /// The subject of the events of an operation.
    pub(super) fn event_subject(&self, job_id: impl std::fmt::Display) -> String {
        format!("{}.{job_id}", self.nats.stream.as_str())
    }
}

fn prefix(bucket: &NatsName) -> String {
    format!("$KV.{}.", bucket.as_str())
}

fn stream_of(bucket: &NatsName) -> String {
    format!("KV_{}", bucket.as_str())
}

async fn connect(nats: &Arc<Nats>, instance: &str) -> Result<Client, NatsError> {
    // An error here says more than one in the callback.
    login::answer(&nats.login, &[])?;
    let at_connection = Arc::clone(nats);
    let options = ConnectOptions::with_auth_callback(move |nonce| {
        let nats = Arc::clone(&at_connection);
        async move { login::answer(&nats.login, &nonce).map_err(AuthError::new) }
    });
    let mut options = options
        .name(format!("wasmspawner {instance}"))
        .connection_timeout(CONNECT)
        .request_timeout(Some(ANSWER))
        .ping_interval(PING_EVERY)
        // A server that another one names may be reached without TLS, and would get the login.
        .ignore_discovered_servers()
        .require_tls(nats.servers.iter().all(NatsServer::is_tls));
    if let Some(ca_file) = &nats.ca_file {
        options = options.add_root_certificates(ca_file.clone());
    }
    let servers: Vec<&str> = nats.servers.iter().map(NatsServer::as_str).collect();
    let failed = |source| NatsError::Connect { servers: servers.join(", "), source };
    options.connect(&servers[..]).await.map_err(failed)
}

fn context(client: &Client) -> Context {
    let mut jetstream = jetstream::new(client.clone());
    jetstream.set_timeout(ANSWER);
    jetstream
}

/// The stream of a key-value bucket, as all clients of NATS make it (ADR-8).
fn bucket(name: &NatsName, max_age: Duration) -> Config {
    Config {
        name: stream_of(name),
        subjects: vec![format!("{}>", prefix(name))],
        max_messages_per_subject: 1,
        max_age,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        ..Config::default()
    }
}

fn events(name: &NatsName, max_age: Duration) -> Config {
    Config {
        name: name.as_str().to_owned(),
        subjects: vec![format!("{}.*", name.as_str())],
        max_age,
        allow_direct: true,
        ..Config::default()
    }
}

/// What the description of a stream begins with, before the installation.
const DESCRIPTION: &str = "wasmspawner ";

struct StreamMaker<'a> {
    jetstream: &'a Context,
    instance: &'a str,
    replicas: usize,
}

impl StreamMaker<'_> {
    /// Opens a stream, or makes it. One of this installation gets the present limits; one that others have made for it stays
    /// as it is.
    async fn open(&self, key: &'static str, config: Config) -> Result<Stream<Info>, NatsError> {
        let name = config.name.clone();
        let description = format!("{DESCRIPTION}{}", self.instance);
        let wanted = Config { description: Some(description.clone()), num_replicas: self.replicas, ..config };
        let found = match self.jetstream.get_stream(&name).await {
            Ok(stream) => stream,
            Err(error) if is_missing(&error.kind()) => {
                let made = self.jetstream.create_stream(wanted).await;
                return made
                    .map_err(|error| NatsError::jetstream(format!("create the stream {name}"), error));
            }
            Err(error) => return Err(NatsError::jetstream(format!("read the stream {name}"), error)),
        };
        let known = &found.cached_info().config;
        let known_description = known.description.clone().unwrap_or_default();
        if known_description != description {
            return match known_description.strip_prefix(DESCRIPTION) {
                Some(owner) => Err(NatsError::Taken { key, name, owner: owner.to_owned() }),
                None => Ok(found),
            };
        }
        if (known.max_age, known.num_replicas) != (wanted.max_age, wanted.num_replicas) {
            let changed =
                Config { max_age: wanted.max_age, num_replicas: wanted.num_replicas, ..known.clone() };
            let changed = self.jetstream.update_stream(changed).await;
            changed.map_err(|error| NatsError::jetstream(format!("change the stream {name}"), error))?;
        }
        Ok(found)
    }
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// Reads the record of one operation, without a service. Returns the JSON, or `None` if there is none.
pub async fn read_job(
    nats: Nats,
    job_id: wasmspawner_core::names::lab::JobId,
) -> Result<Option<Vec<u8>>, NatsError> {
    let nats = Arc::new(nats);
    let client = connect(&nats, "jobs").await?;
    let name = stream_of(&nats.jobs_bucket);
    let failed = |error: &dyn std::error::Error| {
        NatsError::jetstream(format!("read the operation from the stream {name}"), with_causes(error))
    };
    let jobs = context(&client).get_stream(&name).await.map_err(|error| failed(&error))?;
    let subject = format!("{}{}", prefix(&nats.jobs_bucket), Key::Job(job_id).name());
    match jobs.get_last_raw_message_by_subject(&subject).await {
        Ok(message) => Ok(Some(message.payload.to_vec())),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}
