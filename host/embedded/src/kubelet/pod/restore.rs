//! What a pod starts its life here with: an address, and the containers that already run.

use std::collections::HashMap;

use super::Worker;
use crate::kubelet::{
    runtime::{Adoption, Run},
    status::{ContainerState, End},
};

impl Worker {
    /// Takes the pod on. `None` when the node is full.
    pub(super) fn admit(&self) -> Option<HashMap<String, Run>> {
        let now = self.node.clock.now();
        let Some(address) = self.node.addresses().assign(self.uid()) else {
            let message =
                "Node didn't have enough resource: pods, requested: 1: no pod address is free".to_owned();
            self.state.change(|record| {
                record.started_at = Some(now);
                record.end = Some(End { reason: "OutOfpods".to_owned(), message });
            });
            return None;
        };
        let mut running = HashMap::new();
        let names: Vec<String> = self.state.read(|record| {
            record.init.iter().chain(&record.containers).map(|container| container.name.clone()).collect()
        });
        for name in names {
            if let Some(run) = self.take_over(&name) {
                running.insert(name, run);
            }
        }
        self.state.change(|record| {
            record.started_at.get_or_insert(now);
            record.pod_ip = Some(address.to_string());
        });
        Some(running)
    }

    /// Finds out what became of a container while this program was away.
    fn take_over(&self, name: &str) -> Option<Run> {
        let known = self.state.container(name, Clone::clone)?;
        match self.runtime.adopt(self.uid(), &known, self.node.clock.now()) {
            Adoption::Fresh => None,
            Adoption::Running { run, since, restarts } => {
                self.state.change_container(name, |container| {
                    container.restarts = restarts;
                    if !matches!(container.state, ContainerState::Running { .. }) {
                        container.state = ContainerState::Running { since };
                    }
                });
                Some(run)
            }
            Adoption::Ended { end, restarts } => {
                self.state.change_container(name, |container| {
                    container.restarts = restarts;
                    container.state = ContainerState::Terminated(end);
                    container.ready = false;
                    container.started = false;
                });
                None
            }
        }
    }
}
