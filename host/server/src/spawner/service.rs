//! The tasks that keep the labs and the cluster in agreement.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::manifest;

use super::dispatch::dispatch;
use super::labs::Labs;
use super::recover::recover;
use crate::k8s::{Causes, watch_labs};

/// Learns which labs there are, then watches and reconciles until cancelled. The service is ready once the labs are
/// known; a cluster that cannot be reached is asked again.
pub async fn keep(labs: Labs, watches: kube::Client, stop: CancellationToken) {
    if stop.run_until_cancelled(learn(&labs)).await.is_none() {
        return;
    }
    let selector = manifest::service_selector(&labs.site().config.kubernetes.instance);
    let (changes, seen) = mpsc::unbounded_channel();
    tokio::join!(
        watch_labs(watches, selector, changes, stop.clone()),
        dispatch(labs.clone(), seen),
        reconcile(&labs, &stop),
    );
}

async fn learn(labs: &Labs) {
    let mut pause = Duration::from_millis(200);
    loop {
        match recover(labs).await {
            Ok(found) => {
                tracing::info!(labs = found, "the labs of the cluster are known");
                return labs.mark_ready();
            }
            Err(error) => tracing::warn!(error = %Causes(&error), ?pause, "the labs cannot be listed yet"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(10));
    }
}

async fn reconcile(labs: &Labs, stop: &CancellationToken) {
    let every =
        Duration::try_from(labs.site().config.limits.reconcile_every).unwrap_or(Duration::from_mins(5));
    while stop.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
        labs.site().history.expire(Timestamp::now());
        labs.reconcile();
        if let Err(error) = recover(labs).await {
            tracing::warn!(error = %Causes(&error), "could not reconcile");
        }
    }
}
