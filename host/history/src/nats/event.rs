//! The messages of the stream: what has happened in operations.

use jiff::Timestamp;
use serde::Serialize;
use wasmspawner_core::lifecycle::progress::Entry;
use wasmspawner_core::lifecycle::stage::Finding;
use wasmspawner_core::lifecycle::{OperationKind, Outcome};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::record::operation_record::OperationRecord;

use crate::happening::Happening;

/// A message of the stream.
#[derive(Debug, Serialize)]
struct Message<'a> {
    job_id: JobId,
    #[serde(flatten)]
    key: &'a SpawnKey,
    kind: OperationKind,
    at: Timestamp,
    /// The number in the operation's log, for what is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<usize>,
    #[serde(flatten)]
    what: What<'a>,
}

/// The type of a message, and its data.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum What<'a> {
    Logged(&'a Entry),
    Other(Other<'a>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "lowercase")]
enum Other<'a> {
    Begun,
    Cluster(&'a Finding),
    Ended(Option<&'a Outcome>),
}

/// The message about what has happened in the operation of this record.
pub(super) fn message(record: &OperationRecord, happening: &Happening) -> serde_json::Result<Vec<u8>> {
    let (at, number, what) = match happening {
        Happening::Begun => (record.started_at, None, What::Other(Other::Begun)),
        Happening::Logged(logged) => (logged.at, Some(logged.number), What::Logged(&logged.entry)),
        Happening::Reported(noted) => (noted.at, None, What::Other(Other::Cluster(&noted.finding))),
        Happening::Ended => {
            let ended = What::Other(Other::Ended(record.outcome.as_ref()));
            (record.ended_at.unwrap_or(record.started_at), None, ended)
        }
    };
    let OperationRecord { job_id, ref key, kind, .. } = *record;
    serde_json::to_vec(&Message { job_id, key, kind, at, number, what })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::{Value, json};
    use wasmspawner_core::lifecycle::Operation;
    use wasmspawner_core::lifecycle::progress::LoggedEntry;
    use wasmspawner_core::lifecycle::stage::Severity;
    use wasmspawner_core::names::Username;
    use wasmspawner_core::names::lab::LabKey;
    use wasmspawner_core::record::operation_record::NotedFinding;

    use super::*;

    #[test]
    fn a_message_says_what_has_happened_in_which_operation() {
        let at = Timestamp::UNIX_EPOCH;
        let operation =
            Operation { job_id: JobId::nil(), kind: OperationKind::Spawn, started_at: at, deadline: at };
        let lab = LabKey::default_server(Username::parse("ada").unwrap());
        let mut record = OperationRecord::begin(lab.into(), &operation);
        record.end(Outcome::Complete, at + SignedDuration::from_secs(5));
        let finding = Finding {
            severity: Severity::Warning,
            reason: "FailedMount".into(),
            message: "late".into(),
            count: 2,
            source: "pod".into(),
        };
        let written = |happening: Happening| -> Value {
            let mut value: Value = serde_json::from_slice(&message(&record, &happening).unwrap()).unwrap();
            let of_job = ["job_id", "user", "server", "kind"].map(|field| value[field].take());
            let expected =
                [json!("00000000-0000-0000-0000-000000000000"), json!("ada"), json!(""), json!("spawn")];
            assert_eq!(of_job, expected);
            value.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            value
        };
        let logged = LoggedEntry { number: 7, at, entry: Entry::Info("hello".into()) };
        assert_eq!(
            written(Happening::Logged(logged)),
            json!({ "at": "1970-01-01T00:00:00Z", "number": 7, "type": "info", "data": "hello" })
        );
        assert_eq!(
            written(Happening::Reported(NotedFinding { at, finding: finding.clone() })),
            json!({ "at": "1970-01-01T00:00:00Z", "type": "cluster", "data": finding })
        );
        assert_eq!(
            written(Happening::Ended),
            json!({ "at": "1970-01-01T00:00:05Z", "type": "ended", "data": "complete" })
        );
        assert_eq!(written(Happening::Begun)["type"], "begun");
    }
}
