//! Places a decided lab: in an environment, in a workload, or at its own place.

use std::sync::Arc;

use wasmspawner_core::config::EnvironmentChoice;
use wasmspawner_core::lifecycle::progress::Entry;
use wasmspawner_core::lifecycle::{Event, LabTimeLimits};
use wasmspawner_core::record::{Place, PlaceKind, PlaceWorkload};

use super::bind::waiting_for;
use super::{Driver, Preparation};
use crate::decide::workload_requests::WorkloadLab;

impl Driver {
    /// Begins to wait for an environment. The lab's record names the claim before the claim is made.
    pub(super) fn wait_for_environment(&mut self, terms: LabTimeLimits, choice: EnvironmentChoice) {
        let Preparation::Approved(approved) = &self.preparation else { return };
        let (approved, what) = (Arc::clone(approved), waiting_for(&choice));
        self.preparation = Preparation::Binding(approved, choice);
        self.on_event(Event::EnvironmentNeeded(terms, what));
        self.start_planned_requests();
    }

    /// Moves the lab to the environment that it has got. The lab is then decided again for that namespace, and its
    /// record follows.
    pub(super) fn move_to(&mut self, place: Place) {
        let Preparation::Binding(approved, _) = &self.preparation else { return };
        self.preparation = Preparation::Approved(Arc::new(approved.bound(&place)));
        self.change_place(place);
    }

    /// Identifies the workload by its uid from now on. The record says so before anything is put into the workload.
    /// Also publishes what the lab will not have.
    pub(super) fn enter_workload(&mut self, WorkloadLab { lab, without, .. }: &WorkloadLab) {
        let Some(observer) = &self.observer else { return };
        let workload = PlaceWorkload { workload: lab.workload.clone(), uid: Some(lab.uid.clone()) };
        self.change_place(Place { kind: PlaceKind::InWorkload(workload), ..observer.place().clone() });
        for sentence in without {
            self.publish_entry(Entry::Info(sentence.clone()));
        }
    }

    /// Removes the claim from the place of a lab for which no environment was chosen.
    pub(super) fn leave_claim(&mut self) {
        let Preparation::Approved(approved) = &self.preparation else { return };
        let Some(observer) = &self.observer else { return };
        if approved.place.claim().is_none() && observer.place().kind.claim().is_some() {
            let place = Place { kind: PlaceKind::Configured, ..observer.place().clone() };
            self.change_place(place);
        }
    }

    fn change_place(&mut self, place: Place) {
        let Some(spawn) = self.observer.as_ref().map(|observer| observer.spawn().to_owned()) else { return };
        self.follow(place, spawn);
        if let Some(observer) = &mut self.observer {
            observer.keep_events(Vec::new());
        }
    }
}
