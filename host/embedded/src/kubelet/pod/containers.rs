//! All containers of a pod: each waits for its turn, then lives.

use std::collections::HashMap;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Container;
use tokio_util::sync::CancellationToken;

use super::{Worker, life::Stop};
use crate::kubelet::{
    runtime::{Role, Run},
    status::{ContainerState, PodRecord},
};

impl Worker {
    /// Until every container has ended for good, by itself or because it was asked to.
    pub(super) async fn work(&self, mut resumed: HashMap<String, Run>, stop: &Stop) {
        if !self.mount(&stop.asked).await {
            return;
        }
        let sidecars_stop = CancellationToken::new();
        let init = self.spec().init_containers.as_deref().unwrap_or_default();
        let mut sidecars = Vec::new();
        let mut others = Vec::new();
        for (index, container) in init.iter().enumerate() {
            let run = resumed.remove(&container.name);
            if container.restart_policy.as_deref() == Some("Always") {
                sidecars.push(self.in_turn(container, Role::Sidecar, index, run, &sidecars_stop, stop));
            } else {
                others.push(self.in_turn(container, Role::Init, index, run, &stop.asked, stop));
            }
        }
        for container in &self.spec().containers {
            let run = resumed.remove(&container.name);
            others.push(self.in_turn(container, Role::Main, init.len(), run, &stop.asked, stop));
        }
        let work = async {
            join_all(others).await;
            sidecars_stop.cancel();
        };
        tokio::join!(work, join_all(sidecars));
    }

    /// A container's life, after the init containers before it.
    async fn in_turn(
        &self,
        container: &Container,
        role: Role,
        before: usize,
        run: Option<Run>,
        asked: &CancellationToken,
        stop: &Stop,
    ) {
        if run.is_none() {
            let mut turn = false;
            tokio::select! {
                () = self.state.until(|record| {
                    turn = is_turn(record, before);
                    turn || will_never_be(record, before)
                }) => {}
                () = asked.cancelled() => {}
            }
            if !turn || asked.is_cancelled() {
                return;
            }
        }
        self.live_container(container, role, run, asked, stop).await;
    }
}

fn is_turn(record: &PodRecord, before: usize) -> bool {
    record.init.iter().take(before).all(crate::kubelet::status::ContainerRecord::initialized)
}

/// An init container has failed for good.
fn will_never_be(record: &PodRecord, before: usize) -> bool {
    let failed =
        |state: &ContainerState| matches!(state, ContainerState::Terminated(end) if end.exit_code != 0);
    record.given_up && record.init.iter().take(before).any(|container| failed(&container.state))
}
