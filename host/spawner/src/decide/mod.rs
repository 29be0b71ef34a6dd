//! The decision about a lab, from a request to its objects.
//!
//! `approve` is what the caller waits for: the options are parsed, the policies allow it, the user is within the limits.
//! The spawn is then recorded, and `decide` makes the rest of the decision: it reads facts from the cluster, names the lab, asks the
//! policies what the pod should have, merges their answers, and builds the objects. The kernels and pools of a lab are
//! decided in the same way. `preview` does both without a cluster. `again` does both for a spawn that another process has
//! accepted.

pub(crate) mod again;
pub(crate) mod approve;
pub(crate) mod blueprints;
mod build;
pub(crate) mod certificate;
pub(crate) mod child_limits;
pub(crate) mod choices;
pub(crate) mod details;
pub(crate) mod from_cluster;
pub(crate) mod image_menu;
pub(crate) mod permission;
pub(crate) mod pod_note;
pub(crate) mod preview;
pub(crate) mod programs;
pub(crate) mod running_lab;
pub(crate) mod user_use;
pub(crate) mod workload_requests;

use std::sync::Arc;
use std::time::Duration;

use wasmspawner_core::config::EnvironmentChoice;
use wasmspawner_core::lifecycle::stage::ObservedPod;
use wasmspawner_core::lifecycle::{Failure, LabTimeLimits, Operation};
use wasmspawner_core::manifest::LabObjects;
use wasmspawner_core::policy::compose::Provenance;
use wasmspawner_core::record::volumes::VolumeRecord;
use wasmspawner_core::users::quota::Quota;
use wasmspawner_policies::Patience;

use approve::Approved;
use from_cluster::FromCluster;
use workload_requests::WorkloadLab;

use crate::context::Context;
use crate::context::site_rules::SiteRules;
use crate::errors::{SpawnError, failure};
use crate::published::snapshot::LabDetails;

/// A lab whose objects are decided.
pub(crate) struct Decided {
    pub(crate) about: Arc<LabDetails>,
    pub(crate) objects: LabObjects,
    /// The policy or setting that decided each field.
    pub(crate) provenance: Provenance,
    /// The time limits that the state machine needs to know.
    pub(crate) terms: LabTimeLimits,
    /// The quota that the service counts because no `ResourceQuota` of a namespace does: all labs share one namespace.
    pub(crate) quota: Option<Quota>,
    pub(crate) destination: Destination,
}

/// Where a decided lab goes.
pub(crate) enum Destination {
    /// It gets a pod of its own. The volume claims that it uses are remembered, unless they go with its namespace.
    OwnPod { remembered: Option<VolumeRecord> },
    /// It still has to get this environment, and is then decided again.
    Environment(EnvironmentChoice),
    /// It is put into the pods of this workload.
    Workload(WorkloadLab),
}

impl Decided {
    /// The names of the volume claims that the pod mounts.
    pub(crate) fn claims(&self) -> Box<[String]> {
        ObservedPod::from(&self.objects.pod).claims
    }
}

/// Makes the rest of the decision, after the caller was told that the spawn has begun. Nobody would repeat the request,
/// so busy policies are asked again while there is time.
pub(crate) async fn decide(
    context: &Context,
    approved: &Approved,
    operation: &Operation,
    spawn: &str,
    within: Duration,
) -> Result<Decided, Failure> {
    let decided = decide_here(context, approved, operation, spawn, within).await?;
    remember_volumes(context, &decided).await?;
    Ok(decided)
}

/// Makes the rest of the decision, and changes nothing.
async fn decide_here(
    context: &Context,
    approved: &Approved,
    operation: &Operation,
    spawn: &str,
    within: Duration,
) -> Result<Decided, Failure> {
    let patience = Patience::from_time(within);
    let cluster = FromCluster::read(context, approved, spawn, &patience).await;
    let cluster = cluster.map_err(SpawnError::into_failure)?;
    let mut decided = decide_with(&context.rules(), approved, operation, spawn, cluster, &patience).await?;
    if let Some(request) = &approved.kept {
        decided.objects.keep_request(request);
    }
    Ok(decided)
}

/// Remembers the volume claims of a lab that is about to be created.
async fn remember_volumes(context: &Context, decided: &Decided) -> Result<(), Failure> {
    if let (Some(volumes), Destination::OwnPod { remembered: Some(used) }) =
        (&context.volumes, &decided.destination)
    {
        volumes.remember(used.clone()).await.map_err(|error| failure(&error))?;
    }
    Ok(())
}

/// Like `decide`, with the facts from the cluster given by the caller: names the lab, asks the policies, merges what they
/// want, and builds the objects for the place where the lab goes.
pub(crate) async fn decide_with(
    rules: &SiteRules<'_>,
    approved: &Approved,
    operation: &Operation,
    spawn: &str,
    cluster: FromCluster,
    patience: &Patience,
) -> Result<Decided, Failure> {
    let names = build::names(rules, approved, &cluster.own_claim)?;
    let answers = build::customize(rules, approved, &names, patience).await?;
    // It is large, and only pools need it.
    let parts =
        Box::pin(build::parts_of_pool(rules, approved, (operation, spawn), &names, &cluster, patience));
    let parts = parts.await?;
    let (spawn, cluster) =
        build::compose_answers(rules, approved, operation, spawn, names, answers, cluster)?;
    match &cluster.workload {
        Some(workload) => build::in_workload(rules, approved, spawn, workload, operation),
        None => build::own_pod(rules, approved, spawn, parts, &cluster, operation),
    }
}
