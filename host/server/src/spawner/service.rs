//! The tasks that keep the labs and the cluster in agreement.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::manifest;

use super::dispatch::dispatch;
use super::labs::Labs;
use super::reconcile::reconcile;
use crate::k8s::{Causes, KubernetesError, watch_labs};

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
        reconcile_regularly(&labs, &stop),
    );
}

async fn learn(labs: &Labs) {
    let mut pause = Duration::from_millis(200);
    loop {
        match remember_and_reconcile(labs).await {
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

/// What is remembered comes first: a lab that starts without it would get another volume.
async fn remember_and_reconcile(labs: &Labs) -> Result<usize, KubernetesError> {
    let site = labs.site();
    site.provisioned.load().await?;
    if let Some(volumes) = &site.volumes {
        volumes.load().await?;
    }
    reconcile(labs).await
}

/// What happened between the first list and the first watch is found soon after the start.
const FIRST_RECONCILIATION: Duration = Duration::from_secs(10);

async fn reconcile_regularly(labs: &Labs, stop: &CancellationToken) {
    let every = Duration::try_from(labs.site().config.limits.reconcile_every).unwrap_or(FIRST_RECONCILIATION);
    let mut pause = FIRST_RECONCILIATION.min(every);
    while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        pause = every;
        labs.site().history.expire(Timestamp::now());
        labs.retry_cleanups();
        if let Some(Err(error)) = stop.run_until_cancelled(reconcile(labs)).await {
            tracing::warn!(error = %Causes(&error), "could not reconcile");
        }
    }
}
