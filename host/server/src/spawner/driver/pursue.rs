//! What is to be done next is planned, made, and answered.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use wasmspawner_core::lifecycle::{Event, RecordState, Request, plan};
use wasmspawner_core::record::SpawnStatus;

use super::accept::desired;
use super::{Driver, Material};
use crate::k8s::on_behalf_of;
use crate::records::{RecordError, StoredSpawn};
use crate::spawner::requests::{self, Answer, RestToDelete};

impl Driver {
    /// Makes the requests that the lab needs now, and ends those that it needs no more.
    pub(super) fn pursue(&mut self) {
        let plan = plan(&self.lab, self.record_state(), self.site.now());
        for request in plan.cancel {
            self.cancel(request);
        }
        self.again_at = plan.again_at;
        for request in plan.start {
            self.start(request);
        }
    }

    /// The record is written when what it says about desire, operation and outcome has changed, not at every stage.
    fn record_state(&self) -> RecordState {
        let Some(record) = &self.record else { return RecordState::Missing };
        let operation = &record.spec.operation;
        let same_operation = self.lab.operation.is_none_or(|now| now.job_id == operation.id);
        if same_operation
            && record.spec.desired == desired(&self.lab)
            && record.status.as_ref() == Some(&SpawnStatus::of(&self.lab))
        {
            RecordState::Current
        } else {
            RecordState::Stale
        }
    }

    fn start(&mut self, request: Request) {
        let site = Arc::clone(&self.site);
        let within = requests::TRY_FOR;
        match request {
            Request::Decide => {
                if let (Material::Approved(approved), Some(operation), Some(sight)) =
                    (&self.material, self.lab.operation, &self.sight)
                {
                    let (approved, spawn) = (Arc::clone(approved), sight.spawn().to_owned());
                    self.ask(request, requests::evaluate(site, approved, operation, spawn));
                }
            }
            Request::Create => {
                let Material::Decided(decided) = &self.material else { return };
                let decided = Arc::clone(decided);
                let Some(sight) = &mut self.sight else { return };
                sight.creation_begins();
                let spawn = sight.spawn().to_owned();
                self.cancel_create = CancellationToken::new();
                let (cancel, within) = (self.cancel_create.clone(), self.time_left());
                self.ask(request, requests::create(site, decided, spawn, within, cancel));
            }
            Request::DeletePod => {
                let Some(sight) = &self.sight else { return };
                let own = requests::own(sight, sight.pod().and_then(|pod| pod.uid.clone()));
                let force = self.is_long_overdue();
                self.ask(request, requests::delete_pod(site, sight.place().clone(), own, force, within));
            }
            Request::DeleteRest => {
                let Some(sight) = &self.sight else { return };
                let rest = RestToDelete {
                    place: sight.place().clone(),
                    own: requests::own(sight, sight.namespace().map(|namespace| namespace.uid)),
                    remains: sight.remains().to_vec(),
                };
                self.ask(request, requests::delete_rest(site, rest, within));
            }
            Request::Read => {
                let Some(sight) = &self.sight else { return };
                let known = (
                    sight.pod().and_then(|pod| pod.uid.clone()),
                    sight.namespace().map(|namespace| namespace.uid),
                );
                let (place, spawn) = (sight.place().clone(), sight.spawn().to_owned());
                self.ask(request, requests::read(site, place, spawn, known, within));
            }
            Request::SaveRecord => {
                let (Some(record), Some(sight)) = (&self.record, &self.sight) else { return };
                let spec = self.spec_of(&self.lab, self.requested_by.clone(), sight.place().clone());
                let (record, status) = (record.clone(), SpawnStatus::of(&self.lab));
                self.ask(request, requests::save_record(site, record, spec, status));
            }
            Request::DeleteRecord => {
                let Some(record) = &self.record else { return };
                self.ask(request, requests::delete_record(site, record.clone()));
            }
        }
    }

    fn ask(&mut self, request: Request, task: impl Future<Output = Answer> + Send + 'static) {
        let job_id = self.job_id().map(|job_id| job_id.to_string());
        let span = tracing::info_span!("lab", user = %self.key.user, server = %self.key.server, job_id);
        let handle = self.tasks.spawn(on_behalf_of(self.key.user.clone(), task.instrument(span)));
        self.asked.insert(handle.id(), (request, handle));
        self.lab.in_flight.begin(request);
    }

    fn cancel(&mut self, request: Request) {
        if request == Request::Create {
            // It ends by itself, and says what it has made.
            return self.cancel_create.cancel();
        }
        for (_, handle) in self.asked.values().filter(|(asked, _)| *asked == request) {
            handle.abort();
        }
        self.asked.retain(|_, (asked, _)| *asked != request);
        self.lab.in_flight.forget(request);
    }

    pub(super) fn on_task_done(&mut self, done: Result<(tokio::task::Id, Answer), JoinError>) {
        let id = match &done {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        // One that was cancelled: nobody waits for it.
        let Some((request, _)) = self.asked.remove(&id) else { return };
        let now = self.site.now();
        match done {
            Ok((_, answer)) => {
                self.lab.in_flight.answered(request, now);
                self.on_answer(answer);
            }
            Err(error) => {
                tracing::error!(%error, ?request, "a task of a lab's driver panicked");
                self.site.metrics.panicked();
                let effects = self.lab.lost(request, self.site.restart_policy(), now);
                self.carry_out(effects);
                self.pursue();
            }
        }
    }

    fn on_answer(&mut self, answer: Answer) {
        match answer {
            Answer::Decided(Ok(decided)) => {
                let terms = decided.terms();
                self.about = Arc::clone(&decided.about);
                if let Some(sight) = &mut self.sight {
                    sight.set_claims(&decided.claims());
                }
                self.material = Material::Decided(Arc::new(*decided));
                self.feed(Event::Decided(Ok(terms)));
            }
            Answer::Decided(Err(failure)) => self.feed(Event::Decided(Err(failure))),
            Answer::Created(result) => {
                if let Some(sight) = &mut self.sight {
                    if let Ok(created) = &result {
                        self.site.store.learn_namespace(&created.namespace);
                        self.site.store.learn_pod(&created.pod);
                        sight.created();
                    } else {
                        // Whatever was read meanwhile: objects may have come after that.
                        sight.creation_begins();
                    }
                }
                self.feed(Event::Created(result.map(drop)));
                self.observe();
            }
            Answer::PodDeletion(Ok(gone)) => {
                if let (true, Some(sight)) = (gone, &mut self.sight) {
                    sight.pod_is_gone();
                    if sight.pod().is_some() {
                        let uid = sight.pod().and_then(|pod| pod.uid.clone());
                        self.site.store.learn_pod_gone(sight.place(), uid.as_deref());
                    }
                }
                self.observe();
            }
            Answer::RestDeletion(Ok(left)) => {
                if let Some(sight) = &mut self.sight {
                    sight.remains_asked_to_go(left.remains);
                    if left.gone {
                        sight.rest_is_gone();
                        if sight.namespace().is_some() {
                            let uid = sight.namespace().map(|namespace| namespace.uid);
                            let name = sight.place().namespace.as_str();
                            self.site.store.learn_namespace_gone(name, uid.as_deref());
                        }
                    }
                }
                self.observe();
                if !left.gone {
                    self.feed(Event::RestDeletionAccepted);
                }
            }
            Answer::Read(Ok(())) => {
                let policy = self.stage_policy();
                let creating = self.lab.in_flight.awaits(Request::Create);
                if let Some(sight) = &mut self.sight {
                    if !creating {
                        sight.was_read();
                    }
                    let observed = sight.observe(&policy, Timestamp::now());
                    self.feed(Event::Read(Box::new(observed)));
                }
            }
            Answer::PodDeletion(Err(failure))
            | Answer::RestDeletion(Err(failure))
            | Answer::Read(Err(failure)) => self.feed(Event::RequestFailed(failure)),
            Answer::RecordSaved(result) => self.on_record_saved(result),
            Answer::RecordDeleted(Ok(())) => {
                self.record = None;
                self.lab.in_flight.forget(Request::DeleteRecord);
                self.publish();
            }
            Answer::RecordDeleted(Err(_)) => {}
        }
        self.pursue();
    }

    fn on_record_saved(&mut self, result: Result<Box<StoredSpawn>, RecordError>) {
        match result {
            Ok(stored) => {
                let deleting = stored.deleting;
                self.record = Some(*stored);
                self.lab.in_flight.forget(Request::SaveRecord);
                if deleting {
                    // It is heeded after the next message.
                    self.labs.nudge(&self.key);
                }
            }
            Err(RecordError::Changed(current)) => {
                // It comes as a message as well, and is heeded there.
                self.labs.tell_record(&self.key, *current);
            }
            Err(RecordError::Gone) => {
                tracing::error!(user = %self.key.user, server = %self.key.server, "the record of a lab was taken away; its next stop cleans what it left");
                self.record = None;
            }
            Err(error) => tracing::warn!(%error, "the record of a lab cannot be written; it is tried again"),
        }
    }

    /// True if the pod should have been gone for so long that the site wants it deleted by force.
    fn is_long_overdue(&self) -> bool {
        let deadline = self.sight.as_ref().and_then(|sight| sight.pod()?.deletion);
        let after = self.site.config.limits.force_delete_after;
        let due = deadline.zip(after).and_then(|(deadline, after)| deadline.checked_add(after).ok());
        due.is_some_and(|due| Timestamp::now() >= due)
    }

    /// What is left of the operation's time: one deadline for all that it does.
    fn time_left(&self) -> Duration {
        let deadline = self.lab.operation.map(|operation| operation.deadline);
        let left = deadline.map(|deadline| deadline.duration_since(self.site.now()));
        left.and_then(|left| left.try_into().ok()).unwrap_or_default()
    }
}
