//! A lab as the pure core computes it from its record and its pod, for comparison with the service.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use wasmspawner_core::lifecycle::stage::{ObservedPod, StagePolicy, analyze};
use wasmspawner_core::lifecycle::{
    Admission, Event, Lab, Observed, Presence, Refusal, RestartPolicy, TimeLimits, admit_spawn, admit_stop,
};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::record::{SpawnSpec, SpawnStatus, recover};

use crate::setup::Setup;

/// The time limits of the service.
pub(crate) const LIMITS: TimeLimits =
    TimeLimits { spawn: SignedDuration::from_secs(20), delete: SignedDuration::from_secs(40) };

#[derive(Deserialize)]
struct Record {
    spec: SpawnSpec,
    status: Option<SpawnStatus>,
}

/// A lab, and the deletion state of its record.
pub(crate) struct CoreLab {
    pub(crate) lab: Lab,
    pub(crate) record_deleted: bool,
}

/// The user's lab. Without a record there is none.
pub(crate) async fn lab(setup: &Setup, user: &str) -> CoreLab {
    let Some(record) = setup.records().get_opt(&format!("lab-{user}")).await.unwrap() else {
        return CoreLab { lab: Lab::absent(LIMITS), record_deleted: false };
    };
    let uid = record.metadata.uid.clone();
    let record_deleted = record.metadata.deletion_timestamp.is_some();
    let Record { spec, status } = serde_json::from_value(record.data).unwrap();
    let (observed, now) = (observe(setup, user, uid, status.as_ref()).await, Timestamp::now());
    let seen = !observed.pod.is_missing();
    let recovered =
        recover(&spec, status.as_ref(), record_deleted, &observed, seen, LIMITS, JobId::nil(), now);
    let mut lab = recovered.lab;
    lab.step(Event::Observed(Box::new(observed)), RestartPolicy::default(), now);
    CoreLab { lab, record_deleted }
}

/// The lab's pod. Its other objects affect neither the lab's status nor the decision to accept a request.
async fn observe(setup: &Setup, user: &str, uid: Option<String>, status: Option<&SpawnStatus>) -> Observed {
    let pod = setup.pods_of(user).get_opt(&format!("nb-{user}")).await.unwrap();
    let pod = pod.as_ref().map(ObservedPod::from).filter(|pod| pod.spawn == uid);
    let was_ready = status.is_some_and(|status| status.ready_at.is_some());
    let policy = StagePolicy { was_ready, ..StagePolicy::default() };
    let presence = pod.as_ref().map_or(Presence::Missing, |pod| Presence::from_deleting(pod.is_deleting()));
    Observed {
        pod: presence,
        pod_uid: pod.as_ref().and_then(|pod| pod.uid.clone()),
        rest: presence,
        analysis: analyze(pod.as_ref(), &[], &policy, Timestamp::now()),
        ..Observed::nothing()
    }
}

impl CoreLab {
    /// The HTTP status with which the service answers a spawn.
    pub(crate) fn answer_to_spawn(&self) -> u16 {
        answer(admit_spawn(&self.lab, self.record_deleted, true), 303)
    }

    /// The HTTP status with which the service answers a stop.
    pub(crate) fn answer_to_stop(&self) -> u16 {
        answer(admit_stop(&self.lab), 202)
    }
}

fn answer(decision: Result<Admission, Refusal>, accepted: u16) -> u16 {
    match decision {
        Ok(_) => accepted,
        Err(Refusal::NoLab) => 404,
        Err(_) => 409,
    }
}
