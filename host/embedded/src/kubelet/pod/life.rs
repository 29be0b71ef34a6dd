//! From the first sight of a pod to its last.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Observed, PodState, Worker, publish::publish, schedule::Scheduled};
use crate::kubelet::{
    OnShutdown,
    event::{Journal, record, reference},
    node::Node,
    runtime::PodRuntime,
    status::PodRecord,
};

/// Takes one pod through its life. `known` is where others see its state.
pub(crate) async fn live(
    node: Arc<Node>,
    observed: watch::Receiver<Observed>,
    known: watch::Sender<PodRecord>,
    shutdown: CancellationToken,
) {
    let pod = observed.borrow().pod.clone();
    let (journal, drafts) = Journal::open();
    let runtime = PodRuntime::of(&node, &pod, &journal);
    let record_of_events = record(node.client.clone(), reference(&pod), &node.name, node.clock, drafts);
    let changes = known.subscribe();
    let worker = Worker {
        node: node.clone(),
        pod,
        observed: observed.clone(),
        journal,
        state: PodState::new(known),
        runtime,
        shutdown,
    };
    // The life ends by dropping journal and state, upon which the other two write what is left and end as well.
    tokio::join!(worker.life(), record_of_events, publish(node.clone(), observed, changes));
}

impl Worker {
    async fn life(mut self) {
        match self.schedule().await {
            Scheduled::Here => {}
            Scheduled::Gone => return,
            Scheduled::DeletedBefore => return self.delete_object().await,
        }
        if self.has_ended() {
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
                self.announce(&why);
                stop.now(self.grace(&why));
                tokio::select! {
                    () = &mut work => {}
                    () = self.gone() => {
                        stop.now(Duration::ZERO);
                        work.await;
                    }
                    () = self.shutdown.cancelled(), if self.node.on_shutdown == OnShutdown::Keep => return,
                }
                self.conclude(&why);
            }
        }
        self.wait_for_deletion().await;
    }
}

/// The request to the containers to end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    /// The main and init containers. Sidecars follow when these have ended.
    pub(crate) asked: CancellationToken,
    deadline: watch::Sender<Option<Instant>>,
}

impl Stop {
    /// A stop that has begun.
    pub(crate) fn within(grace: Duration) -> Self {
        let stop = Self::default();
        stop.now(grace);
        stop
    }

    /// Containers get this long from now. A shorter time may follow.
    fn now(&self, grace: Duration) {
        self.deadline.send_replace(Some(Instant::now() + grace));
        self.asked.cancel();
    }

    /// Until the containers have had their time.
    pub(crate) async fn grace_is_over(&self) {
        let mut deadline = self.deadline.subscribe();
        loop {
            let at = *deadline.borrow_and_update();
            let over = async {
                match at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                Ok(()) = deadline.changed() => {}
            }
        }
    }
}

/// What ends a pod that would have gone on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Interruption {
    /// Somebody has asked for its deletion.
    Deletion,
    /// Its object has vanished.
    Gone,
    /// It was active longer than its spec allows.
    Deadline,
    /// The node was short of something (simulated).
    Eviction,
    /// The kubelet ends.
    Shutdown,
}
