//! The data of one policy, which changes while the policy is used.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use arc_swap::ArcSwap;
use futures::future::join_all;
use jiff::Timestamp;
use tokio::time::Instant;
use wasmspawner_core::config::{DataSource, DocumentConfig};

use super::SiteData;
use super::datum::{Datum, MAX_DOCUMENT_BYTES};
use super::documents::{DocumentRead, Documents};
use crate::errors::LoadErrorKind;
use wasmspawner_files::confined_file;
use wasmspawner_outgoing as outgoing;

/// The data of one policy.
#[derive(Default)]
pub(crate) struct LiveData {
    now: ArcSwap<BTreeMap<String, Datum>>,
    states: Mutex<BTreeMap<String, DataState>>,
    documents: BTreeMap<String, DocumentConfig>,
}

#[derive(Debug, Clone)]
struct DataState {
    read_at: Timestamp,
    /// The reason that the last read failed.
    problem: Option<String>,
    /// The time at which a document is due to be read again.
    due: Option<Instant>,
}

/// The state of one datum of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataReport {
    /// The name under which the policy reads the data.
    pub name: String,
    /// The version of the content. Different contents have different versions.
    pub version: String,
    /// The time at which the content was read.
    pub read_at: Timestamp,
    /// The reason that a later read failed.
    pub problem: Option<String>,
}

impl LiveData {
    /// Reads all files and documents.
    pub(crate) async fn read(
        sources: &BTreeMap<String, DataSource>,
        documents: &Documents,
    ) -> Result<Self, LoadErrorKind> {
        let live = Self {
            documents: sources
                .iter()
                .filter_map(|(name, source)| Some((name.clone(), source.document()?.clone())))
                .collect(),
            ..Self::default()
        };
        let read = sources.iter().map(async |(name, source)| {
            let read = match source {
                DataSource::File(path) => read_file(path).await,
                DataSource::Document(document) => documents.read(document).await,
            };
            (name, source, read)
        });
        for (name, source, read) in join_all(read).await {
            let read = read.map_err(|problem| LoadErrorKind::Data {
                name: name.clone(),
                place: place(source),
                problem,
            })?;
            live.put(name, read);
        }
        Ok(live)
    }

    /// Returns the current data.
    pub(crate) fn now(&self) -> SiteData {
        self.now.load_full()
    }

    /// Reads the documents that are due.
    pub(crate) async fn refresh(&self, policy: &str, documents: &Documents) {
        let due = self.documents.iter().filter(|(name, _)| self.is_due(name));
        join_all(due.map(async |(name, document)| {
            let read = documents.read(document).await;
            self.log(policy, name, read.as_ref().map_or_else(Some, |read| read.problem.as_ref()));
            match read {
                Ok(read) => self.put(name, read),
                Err(problem) => self.put_off(name, problem),
            }
        }))
        .await;
    }

    /// Returns the state of each datum.
    pub(crate) fn report(&self) -> Vec<DataReport> {
        let (now, states) = (self.now(), self.states.lock().unwrap_or_else(PoisonError::into_inner));
        let of = |(name, datum): (&String, &Datum)| {
            let DataState { read_at, problem, due: _ } = states.get(name)?.clone();
            Some(DataReport { name: name.clone(), version: datum.version.clone(), read_at, problem })
        };
        now.iter().filter_map(of).collect()
    }

    fn put(&self, name: &str, read: DocumentRead) {
        let DocumentRead { datum, read_at, problem } = read;
        if self.now.load().get(name) != Some(&datum) {
            self.now.rcu(|now| {
                let mut next = BTreeMap::clone(now);
                next.insert(name.to_owned(), datum.clone());
                next
            });
        }
        let state = DataState { read_at, problem, due: self.next(name) };
        self.states.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), state);
    }

    fn put_off(&self, name: &str, problem: String) {
        let due = self.next(name);
        if let Some(state) = self.states.lock().unwrap_or_else(PoisonError::into_inner).get_mut(name) {
            (state.problem, state.due) = (Some(problem), due);
        }
    }

    /// Logs when a document can no longer be read, and when it can be read again.
    fn log(&self, policy: &str, name: &str, problem: Option<&String>) {
        let before = {
            let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
            states.get(name).and_then(|state| state.problem.clone())
        };
        match problem {
            Some(problem) if before.as_ref() != Some(problem) => {
                tracing::warn!(
                    policy,
                    data = name,
                    problem,
                    "data of a policy cannot be read; what was read before is used"
                );
            }
            None if before.is_some() => tracing::info!(policy, data = name, "data of a policy is read again"),
            Some(_) | None => {}
        }
    }

    fn is_due(&self, name: &str) -> bool {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.get(name).and_then(|state| state.due).is_some_and(|due| due <= Instant::now())
    }

    fn next(&self, name: &str) -> Option<Instant> {
        self.documents.get(name).map(|document| Instant::now() + document.every.unsigned_abs())
    }
}

/// Returns the source of data, for messages.
fn place(source: &DataSource) -> String {
    match source {
        DataSource::File(path) => path.display().to_string(),
        DataSource::Document(document) => outgoing::shown(&document.url),
    }
}

async fn read_file(path: &Path) -> Result<DocumentRead, String> {
    let (file, limit) = (path.to_owned(), u64::try_from(MAX_DOCUMENT_BYTES).unwrap_or(u64::MAX));
    let is_csv = path.extension().is_some_and(|extension| extension == "csv");
    let read = move || {
        let text = confined_file::read_text(&file, limit).map_err(|error| error.to_string())?;
        if is_csv { Datum::from_csv(&text) } else { Datum::from_yaml(&text) }
    };
    let datum = tokio::task::spawn_blocking(read).await.map_err(|panic| panic.to_string())??;
    Ok(DocumentRead { datum, read_at: Timestamp::now(), problem: None })
}
