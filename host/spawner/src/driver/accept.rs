//! Accepts requests: a request is written into the lab's record before it is answered and carried out.

use std::sync::Arc;

use tokio::time::Instant;
use wasmspawner_core::lifecycle::progress::Entry;
use wasmspawner_core::lifecycle::{
    Admission, Event, Lab, OperationKind, Phase, Refusal, Request, admit_spawn, admit_stop,
};
use wasmspawner_core::manifest::ParentPod;
use wasmspawner_core::names::ServerName;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::record::{Desired, OperationSpec, Place, SpawnSpec, SpawnStatus};

use super::{Driver, Preparation};
use wasmspawner_core::names::spawn_key::{SpawnKey, SpawnKind};

use super::place_observer::PlaceObserver;
use crate::decide::approve::Approved;
use crate::errors::SpawnError;
use crate::labs::message::StopRequest;
use wasmspawner_kubernetes::records::{RecordError, StoredSpawn, soon};

impl Driver {
    /// Begins a spawn, if the state of the lab and of the service allows it.
    pub(super) async fn accept_spawn(
        &mut self,
        approved: Arc<Approved>,
        until: Instant,
    ) -> Result<(), SpawnError> {
        self.finish_record_write_by(until).await?;
        if self.labs.is_draining() {
            return Err(Refusal::ShuttingDown.into());
        }
        let slot = Arc::clone(&self.context.spawn_slots).try_acquire_owned().ok();
        let record_deleted = self.record.as_ref().is_some_and(|record| record.deleting);
        admit_spawn(&self.lab, record_deleted, slot.is_some())?;
        let operation = self.context.operation(OperationKind::Spawn, self.context.time_limits());
        let place = approved.place(&self.context, &self.key, operation.job_id);
        let remains = self.remains_beside(&place);
        let about = Arc::new(approved.about(&operation));

        let mut next = self.lab.clone();
        next.kind = kind_at(&self.key, &place);
        if !remains.is_empty() {
            next.leaves_objects();
        }
        let event = Event::SpawnAccepted(operation);
        let effects = next.step(event, self.context.restart_policy(), self.context.now());
        let mut spec = SpawnSpec {
            remains: remains.clone(),
            lab: about.description.clone(),
            ..self.spec_of(&next, Some(approved.requested_by().to_owned()), place.clone())
        };
        spec.operation.request = approved.kept.as_ref().map(|request| request.digest(operation.job_id));
        // A shutdown of the service waits for this spawn, too.
        self.accepting = true;
        self.publish();
        let written = self.write(&spec, &SpawnStatus::from_lab(&next), until).await;
        self.accepting = false;
        self.publish();
        let refused = self.record.is_none() && matches!(written, Err(SpawnError::Cluster(_)));
        self.unanswered = refused.then_some(operation.job_id);
        let stored = written?;
        if stored.lacks_spec() {
            // After a restart, the service could not continue this lab. The driver has the record, so that it deletes it.
            self.record = Some(stored);
            return Err(SpawnError::RecordIncomplete);
        }

        self.requested_by = Some(approved.requested_by().to_owned());
        let is_elsewhere = self.observer.as_ref().is_some_and(|observer| *observer.place() != place);
        self.follow(place, stored.uid.clone());
        if let Some(observer) = &mut self.observer {
            observer.set_remains(remains);
            observer.keep_events(Vec::new());
        }
        self.record = Some(stored);
        self.lab = next;
        if is_elsewhere {
            // Their answers would be taken for those of requests at the new place.
            for request in [Request::DeletePod, Request::DeleteRest, Request::Read] {
                self.cancel(request);
            }
        }
        self.spawn_slot = slot;
        self.about = about;
        let parent = approved.parent().cloned();
        self.preparation = Preparation::Approved(approved);
        self.carry_out(effects);
        if let Some(parent) = parent {
            self.stop_if_orphaned(&parent);
        }
        Ok(())
    }

    /// Stops a child whose lab was stopped, or replaced, while the child was being accepted: the lab's driver may have
    /// looked for children before this one existed.
    fn stop_if_orphaned(&self, parent: &ParentPod) {
        if !self.labs.is_running_as(&self.key.lab, parent) {
            let (labs, key) = (self.labs.clone(), self.key.clone());
            tokio::spawn(async move { labs.stop_orphan(&key).await });
        }
    }

    /// Begins a stop, or joins a stop under way.
    pub(super) async fn accept_stop(
        &mut self,
        request: StopRequest,
        until: Instant,
    ) -> Result<(), SpawnError> {
        self.finish_record_write_by(until).await?;
        let StopRequest { requested_by, because, only } = request;
        if only.is_some_and(|spawn| !self.is_lab_of(spawn)) {
            return Err(Refusal::NoLab.into());
        }
        if admit_stop(&self.lab)? == Admission::Join {
            return Ok(());
        }
        let operation = self.context.operation(OperationKind::Stop, self.lab.limits());
        let mut next = self.lab.clone();
        let event = Event::StopAccepted(operation);
        let effects = next.step(event, self.context.restart_policy(), self.context.now());
        if let Some(observer) = &self.observer
            && self.record.is_some()
        {
            let spec = self.spec_of(&next, Some(requested_by.clone()), observer.place().clone());
            match self.write(&spec, &SpawnStatus::from_lab(&next), until).await {
                Ok(stored) => self.record = Some(stored),
                // Somebody has deleted the record. The stop goes on without it.
                Err(SpawnError::RecordGone) => self.record = None,
                Err(error) => return Err(error),
            }
        }
        self.requested_by = Some(requested_by);
        self.lab = next;
        self.carry_out(effects);
        if let Some(because) = because {
            self.publish_entry(Entry::Info(because));
        }
        Ok(())
    }

    /// True while the lab is starting or running and was made by this spawn.
    fn is_lab_of(&self, spawn: JobId) -> bool {
        matches!(self.lab.phase, Phase::Starting(_) | Phase::Running(_)) && self.job_id() == Some(spawn)
    }

    /// Takes over the record as the watch shows it. Deleting it or setting `desired: Stopped` stops the lab: see
    /// [`Self::follow_record`].
    pub(super) async fn on_record(&mut self, stored: StoredSpawn) {
        self.finish_record_write().await;
        let Some(record) = &mut self.record else {
            // The refused spawn's record was written after all. Nobody waits for that lab, so the record will be
            // deleted.
            if self.unanswered.take_if(|job_id| *job_id == stored.spec.operation.id).is_some() {
                self.record = Some(stored);
            }
            return;
        };
        if stored.uid != record.uid || stored.version() <= record.version() {
            return;
        }
        *record = stored;
    }

    /// Stops the lab if its record asks for that. Nothing is kept of a lab whose record is being deleted.
    pub(super) async fn follow_record(&mut self) {
        let is_deleted = self.record.as_ref().is_some_and(|record| record.deleting);
        if is_deleted && self.observer.as_mut().is_some_and(PlaceObserver::keep_nothing) {
            self.observe();
        }
        let unwanted = |record: &StoredSpawn| record.deleting || record.spec.desired == Desired::Stopped;
        let alive = matches!(self.lab.phase, Phase::Starting(_) | Phase::Running(_) | Phase::Failed(_));
        // `desired` is Stopped already for a lab whose stop failed; that stop goes on anyway.
        if alive && desired(&self.lab) == Desired::Running && self.record.as_ref().is_some_and(unwanted) {
            tracing::info!(user = %self.key.lab.user, server = %self.key.lab.server, "the lab is stopped because its record says so");
            if let Err(error) = self.accept_stop(StopRequest::by("kubernetes"), soon()).await {
                tracing::warn!(%error, "a stop that the record asks for could not be begun; it is tried again");
            }
        }
    }

    /// The name in the record: the server's, or the child's own.
    fn recorded_name(&self) -> ServerName {
        let child = self.key.child.as_ref().and_then(|child| ServerName::parse(child.name.as_str()).ok());
        child.unwrap_or_else(|| self.key.lab.server.clone())
    }

    /// The spec of a record for the lab in this state.
    pub(super) fn spec_of(&self, lab: &Lab, requested_by: Option<String>, place: Place) -> SpawnSpec {
        let fresh = || self.context.operation(OperationKind::Spawn, self.context.time_limits());
        let operation = lab.operation.unwrap_or_else(fresh);
        let recorded = self.record.as_ref().map(|record| &record.spec.operation);
        let recorded = recorded.filter(|recorded| recorded.id == operation.job_id);
        let observer = self.observer.as_ref().filter(|observer| *observer.place() == place);
        SpawnSpec {
            kind: kind_at(&self.key, &place),
            user: self.key.lab.user.clone(),
            name: self.recorded_name(),
            server: self.key.child.as_ref().map(|_| self.key.lab.server.clone()).unwrap_or_default(),
            parent: self.key.parent(),
            desired: desired(lab),
            // Set where it is written.
            epoch: 0,
            operation: OperationSpec {
                request: recorded.and_then(|recorded| recorded.request),
                ..OperationSpec::from_operation(&operation, requested_by)
            },
            place,
            remains: self.observer.as_ref().map(|observer| observer.remains().to_vec()).unwrap_or_default(),
            own_namespace: observer.and_then(PlaceObserver::own_namespace).cloned(),
            time_limits: lab.limits().into(),
            lab: self.about.description.clone(),
        }
    }

    /// Creates or replaces the record. If somebody else has changed it meanwhile, the request that is made now wins.
    async fn write(
        &mut self,
        spec: &SpawnSpec,
        status: &SpawnStatus,
        until: Instant,
    ) -> Result<StoredSpawn, SpawnError> {
        let records = self.context.records.clone();
        for _ in 0..2 {
            let written = match &self.record {
                Some(stored) => records.save(stored, spec, status, until).await,
                None => records.create(&self.key.object_name(), spec, status, until).await,
            };
            match written {
                Ok(stored) => return Ok(stored),
                Err(RecordError::Changed(current))
                    if self.record.is_none() && self.is_of_another_leader(&current) =>
                {
                    // The lab is adopted when this driver has gone.
                    return Err(Refusal::LabExists.into());
                }
                Err(RecordError::Changed(current)) => {
                    let unwanted = current.deleting && spec.desired == Desired::Running;
                    self.record = Some(*current);
                    if unwanted {
                        return Err(Refusal::StopInProgress.into());
                    }
                }
                Err(RecordError::Gone) if spec.desired == Desired::Stopped => {
                    return Err(SpawnError::RecordGone);
                }
                Err(RecordError::Gone) => self.record = None,
                Err(RecordError::Superseded) => return Err(Refusal::ShuttingDown.into()),
                Err(RecordError::Kubernetes(error)) => return Err(error.into()),
                Err(error @ RecordError::Taken { .. }) => {
                    tracing::error!(%error, user = %self.key.lab.user, "the record of a lab cannot be written");
                    return Err(SpawnError::RecordTaken);
                }
            }
        }
        Err(SpawnError::RecordTaken)
    }

    /// Returns true for the record of a lab that runs or is to run and that another leader has begun. What this process
    /// has written for a spawn that it refused does not count: nobody waits for that lab.
    fn is_of_another_leader(&self, record: &StoredSpawn) -> bool {
        !record.deleting
            && record.spec.desired == Desired::Running
            && record.spec.epoch != self.context.records.leadership().epoch()
    }

    /// Replaces the record, which must exist: a spawn whose record somebody has deleted is about to be stopped.
    pub(super) async fn rewrite(&mut self, spec: &SpawnSpec, until: Instant) -> Result<(), SpawnError> {
        let status = SpawnStatus::from_lab(&self.lab);
        for _ in 0..2 {
            let Some(record) = &self.record else { return Err(SpawnError::RecordGone) };
            match self.context.records.save(record, spec, &status, until).await {
                Ok(stored) => {
                    self.record = Some(stored);
                    return Ok(());
                }
                Err(RecordError::Changed(current)) if current.deleting => {
                    return Err(Refusal::StopInProgress.into());
                }
                Err(RecordError::Changed(current)) => self.record = Some(*current),
                Err(RecordError::Gone) => return Err(SpawnError::RecordGone),
                Err(RecordError::Superseded) => return Err(Refusal::ShuttingDown.into()),
                Err(RecordError::Kubernetes(error)) => return Err(error.into()),
                Err(RecordError::Taken { .. }) => return Err(SpawnError::RecordTaken),
            }
        }
        Err(SpawnError::RecordTaken)
    }

    /// Returns the places where an earlier lab has left objects, except the place of the new lab.
    fn remains_beside(&self, place: &Place) -> Vec<Place> {
        let Some(observer) = &self.observer else { return Vec::new() };
        let mut remains = observer.remains().to_vec();
        let has_left = !self.lab.is_settled() || self.lab.keeps_namespace();
        if has_left && observer.place() != place && !remains.contains(observer.place()) {
            remains.push(observer.place().clone());
        }
        remains.retain(|other| other != place);
        remains
    }

    /// Observes a place, unless it is observed already.
    pub(super) fn follow(&mut self, place: Place, spawn: String) {
        let same = |observer: &PlaceObserver| *observer.place() == place && observer.spawn() == spawn;
        if !self.observer.as_ref().is_some_and(same) {
            let mut observer = PlaceObserver::new(&self.context, &self.key, place, spawn);
            if self.key.kind() == SpawnKind::DaskPool {
                observer.follow_workers();
            }
            self.observer = Some(observer);
        }
    }

    /// Waits until a write of the record that is under way has ended, so that the next write starts from its result.
    async fn finish_record_write(&mut self) {
        while self.lab.in_flight.awaits(Request::SaveRecord)
            || self.lab.in_flight.awaits(Request::DeleteRecord)
        {
            match self.tasks.join_next_with_id().await {
                Some(done) => self.on_task_done(done),
                None => return,
            }
        }
    }

    /// Like `finish_record_write`, but fails with `NoTime` at `until`.
    pub(super) async fn finish_record_write_by(&mut self, until: Instant) -> Result<(), SpawnError> {
        if Instant::now() >= until {
            return Err(SpawnError::NoTime);
        }
        tokio::time::timeout_at(until, self.finish_record_write()).await.map_err(|_| SpawnError::NoTime)
    }
}

/// The kind of a spawn with this key at this place.
fn kind_at(key: &SpawnKey, place: &Place) -> SpawnKind {
    if place.kind.workload().is_some() { SpawnKind::Injected } else { key.kind() }
}

/// The desired state for the record of a lab in this state.
pub(super) fn desired(lab: &Lab) -> Desired {
    match &lab.phase {
        Phase::Starting(_) | Phase::Running(_) => Desired::Running,
        Phase::Failed(failed) if failed.operation == OperationKind::Spawn => Desired::Running,
        Phase::Failed(_)
        | Phase::Stopping(_)
        | Phase::CleaningUp(_)
        | Phase::NamespaceKept(_)
        | Phase::Absent => Desired::Stopped,
    }
}
