//! Processes of an installation, and what they write.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use async_nats::jetstream::{self, Context};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use wasmspawner_core::config::{HistoryConfig, Nats};
use wasmspawner_core::lifecycle::progress::{Entry, LoggedEntry, StageReport};
use wasmspawner_core::lifecycle::stage::Stage;
use wasmspawner_core::lifecycle::{Operation, OperationKind};
use wasmspawner_core::names::lab::{JobId, LabKey};
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::names::{LabelValue, Username};
use wasmspawner_core::record::operation_record::OperationRecord;
use wasmspawner_history::{History, HistoryEntry, Retention};

use crate::server::NatsServer;

const KEEP: Retention = Retention { span: SignedDuration::from_hours(48), operations: 10_000 };

/// An address for a server of this test. Linux answers on all of 127/8.
pub(crate) fn own_address() -> Ipv4Addr {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 | (high & 0x3f), low, COUNT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn server() -> Option<NatsServer> {
    NatsServer::start(own_address(), "")
}

pub(crate) fn config(url: &str, more: &str) -> Nats {
    let config = format!("{{\"nats\": {{\"servers\": [\"{url}\"]{more}}}}}");
    let config: HistoryConfig = serde_json::from_str(&config).unwrap();
    config.validate().unwrap().unwrap()
}

/// One process of an installation.
pub(crate) struct Process {
    pub(crate) history: History,
    pub(crate) may_write: Arc<AtomicBool>,
}

impl Process {
    pub(crate) fn of(instance: &str, nats: Nats) -> Self {
        let may_write = Arc::new(AtomicBool::new(false));
        let may = Arc::clone(&may_write);
        let instance = LabelValue::parse(instance).unwrap();
        let history = History::in_nats(nats, &instance, KEEP, move || may.load(Ordering::Relaxed));
        Self { history, may_write }
    }

    pub(crate) fn start(url: &str) -> Self {
        Self::of("hub", config(url, ""))
    }

    /// Lets the process lead. Returns once it knows what was written before.
    pub(crate) async fn lead(&self, number: u64) {
        self.begin_to_lead(number);
        let complete = tokio::time::timeout(Duration::from_mins(1), self.history.complete());
        complete.await.expect("the history is not complete");
    }

    pub(crate) fn begin_to_lead(&self, number: u64) {
        self.may_write.store(true, Ordering::Relaxed);
        self.history.lead(number);
    }

    /// Waits until NATS has everything.
    pub(crate) async fn flush(&self) {
        until(|| !self.history.is_failing()).await;
        let history = self.history.clone();
        tokio::task::spawn_blocking(move || history.flush(Timestamp::now())).await.unwrap();
    }
}

pub(crate) async fn until(holds: impl Fn() -> bool) {
    let mut again = tokio::time::interval(Duration::from_millis(5));
    let waiting = async {
        while !holds() {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("it does not come");
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(seconds)
}

pub(crate) fn job(number: u128) -> JobId {
    JobId::new(uuid::Uuid::from_u128(number))
}

pub(crate) fn lab(user: &str) -> SpawnKey {
    LabKey::default_server(Username::parse(user).unwrap()).into()
}

pub(crate) fn begin(history: &History, user: &str, number: u128) -> HistoryEntry {
    let started_at = at(0);
    let operation =
        Operation { job_id: job(number), kind: OperationKind::Spawn, started_at, deadline: started_at };
    history.begin(OperationRecord::begin(lab(user), &operation))
}

pub(crate) fn note(entry: &HistoryEntry, number: usize) {
    entry.note(&LoggedEntry { number, at: at(0), entry: Entry::Info(format!("event {number}")) });
}

pub(crate) fn enter(entry: &HistoryEntry, number: usize, stage: Stage) {
    let report = StageReport::new(stage, ("R", "m"), 1, at(0));
    entry.note(&LoggedEntry { number, at: at(0), entry: Entry::Stage(report) });
}

/// The numbers of the events that a process knows of an operation.
pub(crate) fn known(history: &History, number: u128) -> Vec<usize> {
    let events = history.job(job(number)).map(|record| record.events).unwrap_or_default();
    events.iter().map(|event| event.number).collect()
}

/// What other programs read.
pub(crate) struct Reader(pub(crate) Context);

impl Reader {
    pub(crate) async fn open(url: &str) -> Self {
        Self(jetstream::new(async_nats::connect(url).await.unwrap()))
    }

    /// The value of a key, and the number of its writer.
    pub(crate) async fn value(&self, bucket: &str, key: &str) -> Option<(Value, String)> {
        let stream = self.0.get_stream(format!("KV_{bucket}")).await.ok()?;
        let found = stream.get_last_raw_message_by_subject(&format!("$KV.{bucket}.{key}")).await.ok()?;
        let writer = found.headers.get("Wasmspawner-Writer").map(ToString::to_string).unwrap_or_default();
        Some((serde_json::from_slice(&found.payload).unwrap_or_default(), writer))
    }

    pub(crate) async fn job(&self, number: u128) -> Option<(Value, String)> {
        self.value("wasmspawner-jobs", &format!("job.{}", job(number))).await
    }

    /// All messages of the stream of events, in order.
    pub(crate) async fn events(&self) -> Vec<Value> {
        let mut stream = self.0.get_stream("WASMSPAWNER_EVENTS").await.unwrap();
        let state = stream.info().await.unwrap().state.clone();
        let mut events = Vec::new();
        for sequence in state.first_sequence..=state.last_sequence {
            if let Ok(message) = stream.get_raw_message(sequence).await {
                events.push(serde_json::from_slice(&message.payload).unwrap());
            }
        }
        events
    }
}
