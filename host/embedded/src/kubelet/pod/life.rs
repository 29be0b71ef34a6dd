//! The life of a pod, from its first observation to its removal.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::end::Interruption;
use super::publish::publish;
use super::schedule::Scheduled;
use super::{Observed, Stop, Worker};
use crate::kubelet::addresses::HOST_IP;
use crate::kubelet::event::{EventDraft, reference, write_events};
use crate::kubelet::node::Node;
use crate::kubelet::runtime::{PodRuntime, Run};
use crate::kubelet::{OnShutdown, status};

/// Runs one pod until its end.
pub(crate) async fn live(node: Arc<Node>, observed: watch::Receiver<Observed>, shutdown: CancellationToken) {
    let pod = observed.borrow().pod.clone();
    let (events, drafts) = mpsc::unbounded_channel();
    let runtime = PodRuntime::from_pod(&node, &pod);
    let writing = write_events(node.client.clone(), reference(&pod), &node.name, drafts);
    let (known, changes) = watch::channel(status::initial(&pod, HOST_IP.to_string()));
    let worker = Worker {
        node: node.clone(),
        pod,
        observed: observed.clone(),
        events,
        status: known,
        runtime,
        shutdown,
    };
    // The life ends by dropping the senders of events and status. The other two futures then write the rest and end as
    // well.
    tokio::join!(worker.life(), writing, publish(node.clone(), observed, changes));
}

impl Worker {
    async fn life(mut self) {
        match self.schedule().await {
            Scheduled::Here => {}
            Scheduled::Gone => return,
            Scheduled::DeletedBefore => return self.delete_object().await,
        }
        if status::is_final(self.pod.status.as_ref()) {
            return self.wait_for_deletion().await;
        }
        let Some(resumed) = self.admit() else { return self.wait_for_deletion().await };
        let stop = Stop::default();
        let mut work = std::pin::pin!(self.work(resumed, &stop));
        let why = tokio::select! {
            () = &mut work => None,
            why = self.interrupted() => Some(why),
        };
        match why {
            None => {}
            Some(Interruption::Shutdown) if self.node.on_shutdown == OnShutdown::Keep => return,
            Some(why) => {
                if why == Interruption::Eviction {
                    self.report(EventDraft::warning("Evicted", super::end::EVICTED));
                }
                let grace = self.grace(why);
                if grace.is_zero() {
                    stop.kill.cancel();
                }
                stop.terminate.cancel();
                let ended = tokio::select! {
                    () = &mut work => true,
                    () = tokio::time::sleep(grace) => false,
                    () = self.gone() => false,
                    () = self.shutdown.cancelled(), if self.node.on_shutdown == OnShutdown::Keep => return,
                };
                if !ended {
                    stop.kill.cancel();
                    work.await;
                }
                self.conclude(why);
            }
        }
        self.wait_for_deletion().await;
    }

    /// Assigns an address to the pod and finds the containers that already run. `None` if the pod cannot run here.
    fn admit(&self) -> Option<HashMap<String, Run>> {
        let now = Timestamp::now();
        let address = self.node.addresses().assign(self.uid());
        let refusal = match (self.runtime.unsupported(&self.pod), address) {
            (Some(what), _) => Some(("UnexpectedAdmissionError", what)),
            (None, None) => Some(("OutOfpods", "no pod address is free".to_owned())),
            (None, Some(_)) => None,
        };
        // The API server has set the time at which the pod was scheduled.
        let scheduled =
            self.observed.borrow().pod.status.as_ref().and_then(|status| status.conditions.clone());
        let mut running = HashMap::new();
        self.change(|current| {
            current.conditions = scheduled;
            current.start_time.get_or_insert(Time(now));
            if let Some((reason, message)) = &refusal {
                current.reason = Some((*reason).to_owned());
                current.message = Some(message.clone());
                return;
            }
            let all = current.init_container_statuses.iter_mut().flatten();
            for container in all.chain(current.container_statuses.iter_mut().flatten()) {
                if let Some(run) = self.runtime.adopt(self.uid(), container, now) {
                    running.insert(container.name.clone(), run);
                }
            }
            if let Some(address) = address {
                status::set_address(current, address.to_string());
            }
        });
        refusal.is_none().then_some(running)
    }

    /// Runs the containers until all have ended for good: first the init containers one after the other, then the
    /// others together.
    async fn work(&self, mut resumed: HashMap<String, Run>, stop: &Stop) {
        if !self.mount(stop).await {
            return;
        }
        for container in self.spec().init_containers.iter().flatten() {
            let run = resumed.remove(&container.name);
            if self.live_container(container, true, run, stop).await != Some(0) {
                return;
            }
        }
        let mains = self.spec().containers.iter().map(|container| {
            let run = resumed.remove(&container.name);
            self.live_container(container, false, run, stop)
        });
        join_all(mains.collect::<Vec<_>>()).await;
    }
}
