//! What a step of the lab asks for, done.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use wasmspawner_core::lifecycle::{Effect, Event, OperationKind, Phase};

use super::Driver;
use crate::spawner::errand::{self, Answer};

impl Driver {
    pub(super) fn feed(&mut self, event: Event) {
        let effects = self.lab.step(event, Timestamp::now());
        // What is told of the lab is never behind what its events say.
        self.publish();
        let told_more = !effects.is_empty();
        for effect in effects {
            self.carry_out(effect);
        }
        if told_more {
            self.publish();
        }
        if !matches!(self.lab.phase, Phase::Starting(_)) {
            self.spawn_slot = None;
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Begin(operation) => self.begin(&operation),
            Effect::Publish(entry) => self.say(entry),
            Effect::Finish(outcome) => self.finish(&outcome),
            Effect::EvaluatePolicy => {
                // Nothing is left to delete: a request that is still under way must not meet the next lab.
                self.deletions.drain(..).for_each(|deletion| deletion.abort());
                if let (Some(approved), Some(operation)) = (self.approved.take(), self.lab.operation) {
                    self.evaluation =
                        Some(self.send(errand::evaluate(Arc::clone(&self.site), approved, operation)));
                }
            }
            Effect::CancelPolicy => {
                if let Some(evaluation) = self.evaluation.take() {
                    evaluation.abort();
                }
            }
            Effect::Apply => {
                self.cancel_apply = CancellationToken::new();
                if let (Some(decided), Some(operation)) = (self.decided.take(), self.lab.operation) {
                    let cancel = self.cancel_apply.clone();
                    self.send(errand::apply(Arc::clone(&self.site), decided, operation, cancel));
                }
            }
            Effect::CancelApply => self.cancel_apply.cancel(),
            Effect::DeletePod => {
                if let (Some(place), Some(operation)) = (self.place.clone(), self.lab.operation) {
                    let uid = self.world.pod().and_then(|pod| pod.metadata.uid.clone());
                    let deletion =
                        self.send(errand::delete_pod(Arc::clone(&self.site), place, uid, operation));
                    self.deletions.push(deletion);
                }
            }
            Effect::DeleteRest => {
                if let (Some(place), Some(operation)) = (self.place.clone(), self.lab.operation) {
                    let (site, key) = (Arc::clone(&self.site), self.key.clone());
                    let deletion = self.send(errand::delete_rest(site, key, place, operation));
                    self.deletions.push(deletion);
                }
            }
            Effect::Reap(ending) => {
                self.feed(Event::ReapBegun(self.site.operation(OperationKind::Reap), ending));
            }
            Effect::MarkProvisioned => {
                self.send(errand::mark_provisioned(Arc::clone(&self.site), self.key.clone()));
            }
        }
    }

    pub(super) fn send(&mut self, errand: impl Future<Output = Answer> + Send + 'static) -> AbortHandle {
        let job_id = self.job_id();
        let told = job_id.map(|job_id| job_id.to_string());
        let span =
            tracing::info_span!("lab", user = %self.key.user, server = %self.key.server, job_id = told);
        self.errands.spawn(async move { (job_id, errand.await) }.instrument(span))
    }
}
