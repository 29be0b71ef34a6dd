//! Labs in workloads: the permission to put one in, and the requests that put it in and take it out.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::manifest::{self, InjectedLab, Injection};
use wasmspawner_core::names::LabelValue;
use wasmspawner_core::policy::compose::check_access;
use wasmspawner_core::policy::{
    Denial, InjectRequest, InjectVerdict, SeenWorkload, ValidatedSpawn, WorkloadAccess,
};
use wasmspawner_core::record::{Place, PlaceWorkload};
use wasmspawner_core::workload::{LabMark, Workload, check, declares_port, free_port, installation_label};

use super::approve::Approved;
use crate::context::Context;
use crate::errors::SpawnError;
use crate::errors::denied_by::DeniedBy;
use wasmspawner_kubernetes::k8s::{Creator, KubernetesError, LabInWorkload};
use wasmspawner_kubernetes::workloads::Workloads;
use wasmspawner_policies::Patience;

/// The time limit for reading the workload while a caller waits.
const READ_FOR: Duration = Duration::from_secs(5);

/// A workload into which the lab may be put.
#[derive(Debug)]
pub(crate) struct AdmittedWorkload {
    pub(crate) injection: Injection,
    /// A port that no other container in the workload's pods has.
    pub(crate) port: u16,
}

/// A lab that is to be put into a workload.
pub(crate) struct WorkloadLab {
    pub(crate) lab: LabInWorkload,
    /// The patch that is applied to the workload.
    pub(crate) patch: serde_json::Value,
    /// Sentences about the features that the lab lacks because it has no pod of its own.
    pub(crate) without: Vec<String>,
}

/// Reads the workload that the request names, and asks the policies whether its user may have a lab in it. Returns
/// `None` if the lab gets a pod of its own. Called while the caller waits for an answer, and again when the lab is
/// built.
pub(crate) async fn admit(
    context: &Context,
    approved: &Approved,
    spawn: &str,
    patience: &Patience,
) -> Result<Option<AdmittedWorkload>, SpawnError> {
    let Some(workload) = &approved.request.wanted.workload else { return Ok(None) };
    let Some(workloads) = &context.workloads else { return Err(SpawnError::NO_WORKLOADS) };
    let read = workloads.requests.read(workload, READ_FOR).await?;
    // A user who may not have a lab there must not learn what is there.
    let template = read.as_ref().map(|object| object.template.clone()).unwrap_or_default();
    let question = InjectRequest {
        user: approved.user.clone(),
        server: approved.request.key.server.to_string(),
        options: approved.request.options.clone(),
        workload: SeenWorkload::from_template(workload, &template),
    };
    let (policy, access) = allowed(context, &question, approved, patience).await?;
    let refused = |why: String| SpawnError::Workload { message: why };
    let object = read.ok_or_else(|| refused(format!("there is no {workload}")))?;
    check(workload, &object).map_err(|refusal| refused(refusal.to_string()))?;
    if let Err(rejected) = check_access(&access, &template, &policy, &context.grants(&policy)) {
        tracing::warn!(error = %rejected, "a policy lets a lab see what it may not");
        return Err(SpawnError::PolicyFailed { policy, reason: "PolicyAnswerRefused" });
    }
    let ports = &context.config.current().workloads.ports;
    let port = free_port(&object.template, ports, &LabMark::from_spawn(spawn));
    let port = port.ok_or_else(|| refused(format!("{workload} uses all of the ports {ports}")))?;
    let injection =
        Injection { workload: workload.clone(), uid: object.state.uid, template: object.template, access };
    Ok(Some(AdmittedWorkload { injection, port }))
}

/// Asks all policies for permission, and returns the access that the last of them grants. Nobody may have a lab in a
/// workload unless a policy allows it.
async fn allowed(
    context: &Context,
    question: &InjectRequest,
    approved: &Approved,
    patience: &Patience,
) -> Result<(String, WorkloadAccess), SpawnError> {
    let mut allowed = None;
    for answer in patience.ask(|| context.policies.inject(question, &approved.subject)).await? {
        match answer.value {
            InjectVerdict::Deny(Denial { message, rule }) => {
                let by = DeniedBy::policy(&answer.policy, answer.hook, rule);
                return Err(SpawnError::denied(message, by));
            }
            InjectVerdict::Allow(access) => allowed = Some((answer.policy.to_string(), access)),
        }
    }
    let nobody = || "No policy of this site lets anybody have a lab in a workload.".to_owned();
    allowed.ok_or_else(|| SpawnError::denied(nobody(), DeniedBy::configuration("policies")))
}

/// Builds the lab; fails if a policy has chosen a port that another container of the pods has.
pub(crate) fn build(
    spawn: &ValidatedSpawn,
    admitted: &AdmittedWorkload,
) -> Result<(manifest::LabObjects, WorkloadLab), SpawnError> {
    let Injection { workload, uid, template, .. } = &admitted.injection;
    let mark = LabMark::from_spawn(spawn.spawn.as_str());
    if declares_port(template, spawn.port, &mark) {
        let message = format!("another container of {workload} has the port {} already", spawn.port);
        return Err(SpawnError::Workload { message });
    }
    let InjectedLab { objects, patch, without } = manifest::build_injected(spawn, &admitted.injection);
    let lab = LabInWorkload {
        workload: workload.clone(),
        uid: uid.clone(),
        spawn: spawn.spawn.to_string(),
        installation_label: installation_label(&spawn.instance),
    };
    Ok((objects, WorkloadLab { lab, patch, without }))
}

/// Creates the lab's objects, and then puts it into the workload.
pub(crate) async fn put_in(
    workloads: &Workloads,
    creator: &Creator,
    (objects, WorkloadLab { lab, patch, .. }): (&manifest::LabObjects, &WorkloadLab),
    within: Duration,
    cancel: CancellationToken,
) -> Result<(), KubernetesError> {
    creator.create_beside_pod(objects, &lab.spawn, within, cancel.clone()).await?;
    let object = workloads.requests.put_in(lab, patch, within, cancel).await?;
    workloads.put(&lab.workload, object);
    Ok(())
}

/// The lab at a place in a workload, if it may have been put in.
fn lab_at(context: &Context, place: &Place, spawn: &str) -> Option<(Workloads, LabInWorkload)> {
    let PlaceWorkload { workload, uid } = place.kind.workload()?.clone();
    let lab = LabInWorkload {
        workload,
        uid: uid?,
        spawn: spawn.to_owned(),
        installation_label: installation_label(&context.config.current().kubernetes.instance()),
    };
    Some((context.workloads.clone()?, lab))
}

/// Takes the lab out of the pod template of its workload, which then replaces its pods.
pub(crate) async fn take_out(
    context: &Context,
    place: &Place,
    spawn: &str,
    within: Duration,
) -> Result<(), KubernetesError> {
    let Some((workloads, lab)) = lab_at(context, place, spawn) else { return Ok(()) };
    match workloads.requests.take_out(&lab, within).await? {
        Some(object) => workloads.put(&lab.workload, object),
        None => forget(&workloads, &lab.workload, &lab.uid),
    }
    Ok(())
}

/// Forgets a workload that is gone, unless another one has its name by now.
fn forget(workloads: &Workloads, workload: &Workload, uid: &str) {
    if workloads.state(workload).is_some_and(|known| known.uid == uid) {
        workloads.remove(workload);
    }
}

/// Deletes the lab's objects beside the workload, and the revisions of the workload that have it. Returns true if
/// nothing is left.
pub(crate) async fn delete_rest(
    context: &Context,
    place: &Place,
    spawn: &str,
    within: Duration,
) -> Result<bool, KubernetesError> {
    let forgotten = match lab_at(context, place, spawn) {
        Some((workloads, lab)) => workloads.requests.forget_revisions(&lab, within).await?,
        None => true,
    };
    let Ok(label) = LabelValue::parse(spawn.to_owned()) else { return Ok(forgotten) };
    let selector = manifest::spawn_selector(&context.config.current().kubernetes.instance(), &label);
    let deleter = context.own_cluster().deleter.clone();
    deleter.delete_objects_beside_workload(place.namespace.as_str(), &selector, within).await?;
    Ok(forgotten)
}

/// Takes out and deletes the remains of an earlier lab. Returns true if nothing is left.
pub(crate) async fn clear(
    context: &Context,
    place: &Place,
    spawn: &str,
    within: Duration,
) -> Result<bool, KubernetesError> {
    take_out(context, place, spawn, within).await?;
    read(context, place, spawn, within).await?;
    let Some(workloads) = &context.workloads else { return Ok(true) };
    if !workloads.pods(&place.namespace, &LabMark::from_spawn(spawn)).is_empty() {
        return Ok(false);
    }
    delete_rest(context, place, spawn, within).await
}

/// Reads the workload and the pods with the lab directly from the API server.
pub(crate) async fn read(
    context: &Context,
    place: &Place,
    spawn: &str,
    within: Duration,
) -> Result<(), KubernetesError> {
    let (Some(PlaceWorkload { workload, .. }), Some(workloads)) = (place.kind.workload(), &context.workloads)
    else {
        return Ok(());
    };
    let known = workloads.state(workload).map(|state| state.uid);
    match (workloads.requests.read(workload, within).await?, known) {
        (Some(object), _) => workloads.put(workload, object),
        (None, Some(uid)) => forget(workloads, workload, &uid),
        (None, None) => {}
    }
    let mark = LabMark::from_spawn(spawn);
    let pods = workloads.requests.pods(workload, &mark.label()).await?;
    workloads.put_pods(&workload.namespace, &mark, &pods);
    Ok(())
}

/// The reclaim mode for the namespace of a workload, which belongs to somebody else.
pub(crate) const NAMESPACE: NamespaceReclaim = NamespaceReclaim::Single;
