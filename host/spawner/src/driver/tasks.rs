//! Makes the requests that the plan asks for, and handles their results.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use wasmspawner_core::lifecycle::{Blame, Event, Failure, Phase, RecordState, Request, plan};
use wasmspawner_core::record::{Place, SpawnStatus};

use super::accept::desired;
use super::bind::{ToBind, bind};
use super::place_observer::PlaceObserver;
use super::requests::{self, PlaceOfCreation, PoolSized, Remaining, RestToDelete, TaskResult};
use super::{Driver, Preparation, pool};
use crate::decide::again::CutOff;
use crate::decide::{Decided, Destination};
use crate::labs::message::Message;
use crate::labs::quota_claims::share_of;
use wasmspawner_kubernetes::k8s::{CreatedLab, on_behalf_of};
use wasmspawner_kubernetes::records::{RecordError, StoredSpawn};

impl Driver {
    /// Makes the requests that the lab needs now, and cancels those that it does not need any more.
    pub(super) fn start_planned_requests(&mut self) {
        let plan = plan(&self.lab, self.record_state(), self.context.now());
        for request in plan.cancel {
            self.cancel(request);
        }
        self.again_at = plan.again_at;
        for request in plan.start {
            self.start(request);
        }
    }

    /// Compares the record with the lab. The record is written only when the desired state, the operation or its
    /// outcome has changed, not at every stage.
    fn record_state(&self) -> RecordState {
        let Some(record) = &self.record else { return RecordState::Missing };
        let operation = &record.spec.operation;
        let elsewhere = self.observer.as_ref().is_some_and(|observer| *observer.place() != record.spec.place);
        let own_namespace = self.observer.as_ref().and_then(PlaceObserver::own_namespace);
        let same_namespace = own_namespace == record.spec.own_namespace.as_ref();
        if !same_namespace && own_namespace.is_some_and(|own| own.deleted) {
            return RecordState::KeepsNamespace;
        }
        // The record of a lab that is starting is written when it is ready.
        let same_namespace = same_namespace || matches!(self.lab.phase, Phase::Starting(_));
        let same_operation = self.lab.operation.is_none_or(|now| now.job_id == operation.id);
        if same_operation
            && record.spec.desired == desired(&self.lab)
            && record.status.as_ref() == Some(&SpawnStatus::from_lab(&self.lab))
            && !elsewhere
            && same_namespace
        {
            RecordState::Current
        } else if elsewhere {
            RecordState::Elsewhere
        } else {
            RecordState::Stale
        }
    }

    fn start(&mut self, request: Request) {
        let context = Arc::clone(&self.context);
        let within = requests::TRY_FOR;
        match request {
            Request::Decide => self.start_decision(),
            Request::Bind => {
                let (Preparation::Binding(approved, choice), Some(observer)) =
                    (&self.preparation, &self.observer)
                else {
                    return;
                };
                let to_bind = ToBind {
                    lab: self.key.lab.clone(),
                    place: Place { namespace: approved.names.namespace.clone(), ..observer.place().clone() },
                    spawn: observer.spawn().to_owned(),
                    choice: choice.clone(),
                };
                self.cancel_create = CancellationToken::new();
                let (cancel, within) = (self.cancel_create.clone(), self.time_left());
                self.spawn_task(request, bind(context, to_bind, within, cancel));
            }
            Request::Create => {
                let Preparation::Decided(decided) = &self.preparation else { return };
                let decided = Arc::clone(decided);
                let Some(observer) = &mut self.observer else { return };
                observer.creation_begins();
                let place = PlaceOfCreation {
                    cluster: observer.place().kind.cluster().cloned(),
                    spawn: observer.spawn().to_owned(),
                    kept_namespace: observer.kept_namespace().map(|kept| kept.uid),
                };
                self.cancel_create = CancellationToken::new();
                let (cancel, within) = (self.cancel_create.clone(), self.time_left());
                let (labs, key, job_id) = (self.labs.clone(), self.key.clone(), self.job_id());
                let note = move |note| labs.tell(&key, Message::CreationNoted(job_id, note));
                self.spawn_task(request, requests::create(context, decided, place, within, cancel, note));
            }
            Request::StopChildren if self.key.is_lab() => {
                let (labs, lab) = (self.labs.clone(), self.key.lab.clone());
                self.spawn_task(request, async move { labs.stop_children(&lab).await });
            }
            Request::StopChildren => {
                let workers = self.workers_to_delete();
                self.spawn_task(request, pool::size(context, workers, within, CancellationToken::new()));
            }
            Request::SizePool => {
                let Some(workers) = self.workers_to_size() else { return };
                self.cancel_create = CancellationToken::new();
                let cancel = self.cancel_create.clone();
                self.spawn_task(request, pool::size(context, workers, within, cancel));
            }
            Request::DeletePod => {
                let Some(observer) = &self.observer else { return };
                let own = requests::own(observer, observer.pod().and_then(|pod| pod.uid.clone()));
                let force = self.is_long_overdue(observer.pod().and_then(|pod| pod.deletion));
                self.spawn_task(
                    request,
                    requests::delete_pod(context, observer.place().clone(), own, force, within),
                );
            }
            Request::DeleteRest => {
                let Some(observer) = &self.observer else { return };
                let rest = RestToDelete {
                    key: self.key.clone(),
                    place: observer.place().clone(),
                    own: requests::own(observer, observer.namespace().map(|namespace| namespace.uid)),
                    remains: observer.remains().to_vec(),
                    kept_namespace: observer.namespace_to_keep(),
                };
                self.spawn_task(request, requests::delete_rest(context, rest, within));
            }
            Request::Read => {
                let Some(observer) = &self.observer else { return };
                let known = (
                    observer.pod().and_then(|pod| pod.uid.clone()),
                    observer.namespace().map(|namespace| namespace.uid),
                );
                let (place, spawn) = (observer.place().clone(), observer.spawn().to_owned());
                self.spawn_task(request, requests::read(context, place, spawn, known, within));
            }
            Request::SaveRecord => {
                let (Some(record), Some(observer)) = (&self.record, &self.observer) else { return };
                let spec = self.spec_of(&self.lab, self.requested_by.clone(), observer.place().clone());
                let (record, status) = (record.clone(), SpawnStatus::from_lab(&self.lab));
                self.spawn_task(request, requests::save_record(context, record, spec, status));
            }
            Request::DeleteRecord => {
                let Some(record) = &self.record else { return };
                self.spawn_task(request, requests::delete_record(context, record.clone()));
            }
        }
    }

    /// Decides what the lab is.
    fn start_decision(&mut self) {
        let (Some(operation), Some(observer)) = (self.lab.operation, &self.observer) else { return };
        let (context, request) = (Arc::clone(&self.context), Request::Decide);
        let (spawn, within) = (observer.spawn().to_owned(), self.time_left());
        match &self.preparation {
            Preparation::Approved(approved) => {
                let approved = Arc::clone(approved);
                self.spawn_task(request, requests::decide(context, approved, operation, spawn, within));
            }
            Preparation::CutOff(digest) => {
                let cut_off = CutOff {
                    key: self.key.lab.clone(),
                    requested_by: self.requested_by.clone().unwrap_or_default(),
                    operation,
                    spawn,
                    place: observer.place().clone(),
                    request: *digest,
                };
                let so_far = self.labs.use_beside(&self.key);
                self.spawn_task(request, requests::decide_again(context, cut_off, so_far, within));
            }
            Preparation::Nothing | Preparation::Binding(..) | Preparation::Decided(_) => {}
        }
    }

    fn spawn_task(&mut self, request: Request, task: impl Future<Output = TaskResult> + Send + 'static) {
        let job_id = self.job_id().map(|job_id| job_id.to_string());
        let span =
            tracing::info_span!("lab", user = %self.key.lab.user, server = %self.key.lab.server, job_id);
        let task = task.instrument(span).instrument(self.span.clone());
        let handle = self.tasks.spawn(on_behalf_of(self.key.lab.user.clone(), task));
        self.asked.insert(handle.id(), (request, handle));
        self.lab.in_flight.begin(request);
    }

    pub(super) fn cancel(&mut self, request: Request) {
        if matches!(request, Request::Bind | Request::Create | Request::SizePool) {
            // A creation ends by itself when it is cancelled, and then reports what it has created.
            return self.cancel_create.cancel();
        }
        for (_, handle) in self.asked.values().filter(|(asked, _)| *asked == request) {
            handle.abort();
        }
        self.asked.retain(|_, (asked, _)| *asked != request);
        self.lab.in_flight.forget(request);
    }

    pub(super) fn on_task_done(&mut self, done: Result<(tokio::task::Id, TaskResult), JoinError>) {
        let id = match &done {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        // A request that was cancelled has no entry; its result is not needed.
        let Some((request, _)) = self.asked.remove(&id) else { return };
        let now = self.context.now();
        match done {
            Ok((_, answer)) => {
                self.lab.in_flight.answered(request, now);
                self.on_answer(answer);
            }
            // The process ends. Another goes on with the lab.
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                tracing::error!(%error, ?request, "a task of a lab's driver panicked");
                self.context.metrics.panicked();
                let effects = self.lab.lost(request, self.context.restart_policy(), now);
                self.carry_out(effects);
                self.start_planned_requests();
            }
        }
    }

    fn on_answer(&mut self, answer: TaskResult) {
        match answer {
            TaskResult::Decided(Ok(decided)) if self.needs_another_namespace(&decided) => {
                self.on_event(Event::NamespaceDiffers);
                self.observe();
            }
            TaskResult::Decided(Ok(decided)) => {
                let terms = decided.terms;
                let about = decided.about.with_workers_of(&self.about);
                let share = share_of(&about.description);
                if let Err(refused) = self.labs.quota_claims().claim(&self.key, share, decided.quota.as_ref())
                {
                    let failure = Failure::new("QuotaExceeded", refused.to_string(), Blame::User);
                    self.on_event(Event::Decided(Err(failure)));
                    return self.start_planned_requests();
                }
                self.about = about;
                if let Some(history) = &self.history {
                    history.note_decisions(self.about.description.decided_by.clone());
                }
                if let Destination::Environment(choice) = decided.destination {
                    return self.wait_for_environment(terms, choice);
                }
                self.leave_claim();
                if let Some(observer) = &mut self.observer {
                    observer.set_claims(&decided.claims());
                }
                if let Destination::Workload(lab) = &decided.destination {
                    self.enter_workload(lab);
                }
                self.preparation = Preparation::Decided(Arc::new(*decided));
                self.on_event(Event::Decided(Ok(terms)));
            }
            TaskResult::Decided(Err(failure)) => self.on_event(Event::Decided(Err(failure))),
            TaskResult::Bound(Ok(place)) => {
                self.move_to(*place);
                self.on_event(Event::Bound(Ok(())));
                self.observe();
            }
            TaskResult::Bound(Err(failure)) => {
                self.on_event(Event::Bound(Err(failure)));
                self.observe();
            }
            TaskResult::Created(result) => self.on_created(result),
            TaskResult::PutIn(result) => {
                if let (Ok(()), Some(observer)) = (&result, &mut self.observer) {
                    observer.created(None);
                }
                self.on_event(Event::Created(result));
                self.observe();
            }
            TaskResult::PoolSized(PoolSized { created, refused, deleted }) => {
                let trouble = refused.as_ref().map(|failure| failure.message.clone());
                self.labs.pool_links().note_trouble(&self.key, trouble);
                if created > 0 {
                    // The next workers need not wait, not even for those of a group that the cluster refuses. Only
                    // requests without any success are repeated after a pause.
                    self.lab.in_flight.forget(Request::SizePool);
                }
                if let Some(failure) = refused.or(deleted.err()) {
                    self.on_event(Event::RequestFailed(failure));
                }
                self.observe();
            }
            TaskResult::ChildrenStopping => self.observe(),
            TaskResult::PodDeletion(Ok(gone)) => {
                if let (true, Some(observer)) = (gone, &mut self.observer) {
                    let cluster = self.context.cluster(observer.place());
                    observer.pod_is_gone();
                    if observer.pod().is_some() {
                        let uid = observer.pod().and_then(|pod| pod.uid.clone());
                        cluster.store.remove_pod(observer.place(), uid.as_deref());
                    }
                }
                self.observe();
            }
            TaskResult::RestDeletion(Ok(left)) => self.on_rest_deletion(left),
            TaskResult::Read(Ok(())) => {
                let policy = self.stage_policy();
                let creating = self.lab.in_flight.awaits(Request::Create);
                if let Some(observer) = &mut self.observer {
                    if !creating {
                        observer.was_read();
                    }
                    let mut observed = observer.observe(&policy, Timestamp::now());
                    self.observe_children(&mut observed);
                    self.on_event(Event::Read(Box::new(observed)));
                }
            }
            TaskResult::PodDeletion(Err(failure))
            | TaskResult::RestDeletion(Err(failure))
            | TaskResult::Read(Err(failure)) => self.on_event(Event::RequestFailed(failure)),
            TaskResult::RecordSaved(result) => self.on_record_saved(result),
            TaskResult::RecordDeleted(Ok(())) => {
                self.record = None;
                self.lab.in_flight.forget(Request::DeleteRecord);
                self.publish();
            }
            TaskResult::RecordDeleted(Err(_)) => {}
        }
        self.start_planned_requests();
    }

    /// True if the namespace of the earlier lab was kept, and this lab cannot have it.
    fn needs_another_namespace(&self, decided: &Decided) -> bool {
        let kept = self.observer.as_ref().and_then(PlaceObserver::kept_namespace);
        let (Preparation::Approved(_), Destination::OwnPod { .. }, Some(kept)) =
            (&self.preparation, &decided.destination, kept)
        else {
            return false;
        };
        decided.objects.kept_namespace_as() != kept.kept_as.as_deref()
    }

    fn on_created(&mut self, result: Result<Box<CreatedLab>, Failure>) {
        if let Some(observer) = &mut self.observer {
            let cluster = self.context.cluster(observer.place());
            if let Ok(created) = &result {
                if let Some(namespace) = &created.namespace {
                    cluster.store.put_namespace(namespace);
                }
                cluster.store.put_pod(&created.pod);
                observer.created(created.namespace.as_ref().and_then(|made| made.metadata.uid.clone()));
            } else {
                // A read that was made meanwhile does not count, because objects may have been created after
                // it.
                observer.creation_begins();
            }
        }
        self.on_event(Event::Created(result.map(drop)));
        self.observe();
    }

    fn on_rest_deletion(&mut self, left: Remaining) {
        if let Some(observer) = &mut self.observer {
            observer.remains_asked_to_go(left.remains);
            if left.objects_gone {
                observer.rest_is_gone();
                let cluster = self.context.cluster(observer.place());
                if observer.namespace().is_some() && !left.namespace_kept {
                    let uid = observer.namespace().map(|namespace| namespace.uid);
                    let name = observer.place().namespace.as_str();
                    cluster.store.remove_namespace(name, uid.as_deref());
                }
            }
        }
        self.observe();
        if !left.gone {
            self.on_event(Event::RestDeletionAccepted);
        }
    }

    fn on_record_saved(&mut self, result: Result<Box<StoredSpawn>, RecordError>) {
        match result {
            Ok(stored) => {
                let (deleting, complete) = (stored.deleting, stored.dropped.is_empty());
                self.record = Some(*stored);
                // What the API server has dropped would be dropped again: the next attempt comes after a pause.
                if complete {
                    self.lab.in_flight.forget(Request::SaveRecord);
                }
                if deleting {
                    // The deletion of the record is handled after the next message, by `follow_record`.
                    self.labs.request_check(&self.key);
                }
            }
            Err(RecordError::Changed(current)) => {
                // The changed record also arrives as a message, and is handled there.
                self.labs.send_record(&self.key, *current);
            }
            Err(RecordError::Gone) => {
                tracing::error!(user = %self.key.lab.user, server = %self.key.lab.server, "the record of a lab was deleted by somebody else; the lab's next stop deletes what is left");
                self.record = None;
            }
            Err(error) => tracing::warn!(%error, "the record of a lab cannot be written; it is tried again"),
        }
    }

    /// True if this deletion deadline of a pod passed so long ago that the configuration (`force_delete_after`)
    /// requires a forced deletion.
    pub(super) fn is_long_overdue(&self, deadline: Option<Timestamp>) -> bool {
        let after = self.context.config.current().limits.force_delete_after;
        let due = deadline.zip(after).and_then(|(deadline, after)| deadline.checked_add(after).ok());
        due.is_some_and(|due| Timestamp::now() >= due)
    }

    /// The time left for the operation. One deadline holds for all its steps.
    fn time_left(&self) -> Duration {
        let deadline = self.lab.operation.map(|operation| operation.deadline);
        let left = deadline.map(|deadline| deadline.duration_since(self.context.now()));
        left.and_then(|left| left.try_into().ok()).unwrap_or_default()
    }
}
