//! The observed state of the workload in whose pods a lab runs.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{Mutex, watch};
use wasmspawner_core::lifecycle::stage::{Analysis, ObservedPod, StagePolicy};
use wasmspawner_core::lifecycle::{Observed, Presence};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::record::{Place, PlaceWorkload};
use wasmspawner_core::workload::{LabMark, Look, Seen, look};

use crate::context::Context;
use wasmspawner_kubernetes::workloads::Workloads;

/// An observer of the workload in whose pods a lab runs.
pub(crate) struct WorkloadObserver {
    workloads: Workloads,
    place: PlaceWorkload,
    mark: LabMark,
    /// The operation that started the lab to look for.
    operation: Option<JobId>,
    /// The uid of the pod that the lab had.
    kept: Option<String>,
    changes: Mutex<watch::Receiver<()>>,
}

impl WorkloadObserver {
    /// Observes the workload of a place. Returns `None` if the place has no workload, or the service knows of no
    /// workloads.
    pub(crate) fn from_place(context: &Context, place: &Place, spawn: &str) -> Option<Self> {
        let (place, workloads) = (place.kind.workload()?.clone(), context.workloads.clone()?);
        let changes = Mutex::new(workloads.follow());
        Some(Self {
            workloads,
            place,
            mark: LabMark::from_spawn(spawn),
            operation: None,
            kept: None,
            changes,
        })
    }

    /// Waits until something has changed.
    pub(crate) async fn changed(&self) {
        // The sender is a part of `workloads`, so waiting cannot fail.
        let _ = self.changes.lock().await.changed().await;
    }

    /// Sets the lab to look for: the one that this operation started, with the pod that it had.
    pub(crate) fn set_lab(&mut self, operation: Option<JobId>, kept: Option<&str>) {
        (self.operation, self.kept) = (operation, kept.map(str::to_owned));
    }

    /// The lab's pod.
    pub(crate) fn pod(&self) -> Option<Arc<ObservedPod>> {
        self.look().pod.map(|lab| Arc::new(lab.pod.clone()))
    }

    /// True if the lab of this operation is in the workload's pod template.
    pub(crate) fn has_lab_of(&self, operation: JobId) -> bool {
        let state = self.workloads.state(&self.place.workload);
        let state = state.filter(|state| Some(&state.uid) == self.place.uid.as_ref());
        state.is_some_and(|state| state.labs.get(&self.mark) == Some(&Some(operation)))
    }

    fn look(&self) -> Look {
        let PlaceWorkload { workload, uid } = &self.place;
        let state = self.workloads.state(workload);
        let pods = self.workloads.pods(&workload.namespace, &self.mark);
        let revisions = self.workloads.revisions();
        look(&Seen {
            workload,
            uid: uid.as_deref(),
            state: state.as_ref(),
            pods: &pods,
            revisions: &revisions,
            mark: &self.mark,
            operation: self.operation,
            kept: self.kept.as_deref(),
        })
    }

    /// Returns the state of the lab, without its other objects. `unknown` is true if the lab may be in the pod template
    /// without the service knowing it.
    pub(crate) fn observe(&self, unknown: bool, policy: &StagePolicy, now: Timestamp) -> Observed {
        if !self.workloads.is_synced(&self.place.workload.namespace) {
            // The workload has not been read yet, so nothing is concluded.
            let message = "What the cluster has of your lab is not known yet.".to_owned();
            let analysis = Analysis { reason: "NotListed".to_owned(), message, ..Analysis::unknown() };
            return Observed { pod: Presence::Present, analysis, ..Observed::nothing() };
        }
        let look = self.look();
        let events = look.pod.as_ref().map(|pod| self.workloads.events(pod)).unwrap_or_default();
        let ready = look.pod.as_ref().filter(|pod| pod.is_ready);
        Observed {
            pod: if unknown { Presence::Present } else { look.presence },
            pod_uid: ready.and_then(|pod| pod.pod.uid.clone()),
            stuck: look.stuck.clone(),
            analysis: look.analysis(&events, policy, now),
            ..Observed::nothing()
        }
    }
}
