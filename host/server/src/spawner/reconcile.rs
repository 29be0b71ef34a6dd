//! Rebuilding what is known of the labs from the cluster, after a restart and whenever a watch may have missed
//! something.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::lifecycle::{Lab, Operation, OperationKind, Outcome, Presence};
use wasmspawner_core::manifest;
use wasmspawner_core::progress::{Entry, OperationRecord, ProgressLog};

use super::labs::Labs;
use super::message::Seen;
use super::place::Place;
use super::record::{self, LabRecord};
use super::recovered::Recovered;
use super::site::Site;
use super::snapshot::About;
use super::world::{Footprint, World, presence};
use crate::k8s::{Found, KubernetesError, list_labs};

/// What the cluster has of one lab.
#[derive(Default)]
struct Remains {
    namespace: Option<Namespace>,
    pod: Option<Pod>,
    env: Option<ConfigMap>,
}

/// Brings what is known of the labs in agreement with one list a kind: a lab that nobody drives is adopted, and what a
/// lab had before the list was made and is not in it is gone. Labs that changed meanwhile are left alone by that.
///
/// Answers how many were adopted.
pub(super) async fn reconcile(labs: &Labs) -> Result<usize, KubernetesError> {
    let site = labs.site();
    let before = labs.footprints();
    let found =
        list_labs(&site.client, &manifest::service_selector(&site.config.kubernetes.instance)).await?;
    let listed = Listed::of(&found);
    for (key, footprint) in before {
        report_gone(labs, &key, footprint, &listed);
    }
    let mut adopted = 0;
    for (key, remains) in by_lab(found, site.config.kubernetes.namespaces) {
        if !labs.has(&key) {
            adopted += 1;
            labs.adopt(key.clone(), recovered(site, &key, remains));
        }
    }
    Ok(adopted)
}

/// What a list has, to be looked up.
struct Listed {
    pods: HashSet<String>,
    namespaces: HashSet<String>,
}

impl Listed {
    fn of(found: &Found) -> Self {
        Self {
            pods: found.pods.iter().filter_map(|pod| pod.metadata.uid.clone()).collect(),
            namespaces: found.namespaces.iter().filter_map(|found| found.metadata.name.clone()).collect(),
        }
    }
}

fn report_gone(labs: &Labs, key: &LabKey, footprint: Footprint, listed: &Listed) {
    if labs.footprint(key).as_ref() != Some(&footprint) {
        return;
    }
    if let Some(uid) = footprint.pod_uid.filter(|uid| !listed.pods.contains(uid)) {
        labs.show(key, Seen::PodGone(Some(uid)));
    }
    if labs.site().config.kubernetes.namespaces == NamespaceReclaim::Delete
        && footprint.namespace.is_some_and(|name| !listed.namespaces.contains(&name))
    {
        labs.show(key, Seen::Rest(Presence::Missing));
    }
}

fn by_lab(found: Found, reclaim: NamespaceReclaim) -> BTreeMap<LabKey, Remains> {
    let mut labs: BTreeMap<LabKey, Remains> = BTreeMap::new();
    // Where namespaces stay, they say nothing about labs.
    let namespaces = found.namespaces.into_iter().filter(|_| reclaim == NamespaceReclaim::Delete);
    for namespace in namespaces {
        if let Some(key) = manifest::lab_key(&namespace.metadata) {
            labs.entry(key).or_default().namespace = Some(namespace);
        }
    }
    for pod in found.pods {
        if let Some(key) = manifest::lab_key(&pod.metadata) {
            labs.entry(key).or_default().pod = Some(pod);
        }
    }
    for config_map in found.config_maps {
        if let Some(key) = manifest::lab_key(&config_map.metadata)
            && record::read(&config_map).is_some()
        {
            labs.entry(key).or_default().env = Some(config_map);
        }
    }
    labs
}

fn recovered(site: &Site, key: &LabKey, remains: Remains) -> Recovered {
    let now = Timestamp::now();
    let record = remains.env.as_ref().and_then(record::read);
    let history = site.history.of(key);
    // A record older than the lab is of an earlier one.
    let since = record.as_ref().map(|record| record.started_at);
    let last = history.first().map(|last| (**last).clone());
    let last = last.filter(|last| since.is_none_or(|since| last.started_at >= since));
    let operation = operation(record.as_ref(), last.as_ref(), &remains, site);
    let place = place(site, key, record.as_ref(), &remains);
    let mut world = World::default();
    if let Some(pod) = remains.pod {
        world.see_pod(Box::new(pod));
    }
    world.see_rest(rest(
        remains.namespace.as_ref().map(|namespace| &namespace.metadata),
        remains.env.as_ref(),
    ));
    let observation = world.observe(&site.stage_policy(), now);
    let last = last.filter(|last| last.job_id == operation.job_id);
    let recorded = last.as_ref().and_then(|last| last.outcome.clone());
    // A pod that is older than its spawn's deadline was ready: otherwise it would have been cleaned.
    let outlived =
        world.pod().is_some() && operation.kind == OperationKind::Spawn && operation.deadline < now;
    let ended = recorded.or(outlived.then_some(Outcome::Complete));
    Recovered {
        lab: Lab::recovered(operation, &observation, site.time_limits(), ended.as_ref()),
        world,
        place,
        about: record.map_or_else(About::default, |record| record.about),
        log: log(&operation, last.as_ref(), ended.as_ref(), now),
        record: match ended {
            Some(_) => None,
            None => Some(last.unwrap_or_else(|| OperationRecord::begin(key.clone(), &operation))),
        },
    }
}

/// What was said, where that is known. Otherwise the numbers go on above all that were given out before: at most one
/// a millisecond was.
fn log(
    operation: &Operation,
    last: Option<&OperationRecord>,
    ended: Option<&Outcome>,
    now: Timestamp,
) -> ProgressLog {
    if let (Some(record), Some(_)) = (last, ended) {
        return ProgressLog::restored(operation.job_id, record.events.clone());
    }
    let elapsed = now.duration_since(operation.started_at).as_millis();
    let mut log = ProgressLog::continued(operation.job_id, usize::try_from(elapsed).unwrap_or(1).max(1));
    if ended.is_some() {
        log.append(Entry::Complete("The lab is ready".into()), now);
    }
    log
}

/// The operation that was under way, or the last one. The history knows best, then the lab's own record.
fn operation(
    record: Option<&LabRecord>,
    last: Option<&OperationRecord>,
    remains: &Remains,
    site: &Site,
) -> Operation {
    let deleting = remains.pod.as_ref().is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
        || remains
            .namespace
            .as_ref()
            .is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some());
    let kind = match last.map(|last| last.kind) {
        Some(kind @ (OperationKind::Stop | OperationKind::Reap)) => kind,
        _ if deleting => OperationKind::Stop,
        _ => OperationKind::Spawn,
    };
    let fresh = site.operation(kind);
    match (last, record) {
        (Some(last), _) if last.kind == kind => {
            let deadline = record.filter(|record| record.job_id == last.job_id).map(|record| record.deadline);
            let deadline = deadline.unwrap_or(fresh.deadline);
            Operation { job_id: last.job_id, started_at: last.started_at, deadline, ..fresh }
        }
        (_, Some(record)) if kind == OperationKind::Spawn => record.operation(kind),
        _ => job_of(remains).map_or(fresh, |job_id| Operation { job_id, ..fresh }),
    }
}

fn job_of(remains: &Remains) -> Option<JobId> {
    let pod = remains.pod.as_ref()?;
    pod.metadata.labels.as_ref()?.get(manifest::JOB_ID_LABEL)?.parse().ok()
}

/// Where the lab is: as its objects say, not as today's templates would.
fn place(site: &Site, key: &LabKey, record: Option<&LabRecord>, remains: &Remains) -> Place {
    let pod = remains.pod.as_ref().map(|pod| &pod.metadata);
    let env = remains.env.as_ref().map(|env| &env.metadata);
    let namespace = pod
        .and_then(|pod| pod.namespace.clone())
        .or_else(|| env.and_then(|env| env.namespace.clone()))
        .or_else(|| remains.namespace.as_ref().and_then(|namespace| namespace.metadata.name.clone()));
    let today = site.names(key).map(|names| Place::of(&names)).ok();
    let pod = pod.and_then(|pod| pod.name.clone()).or_else(|| record.map(|record| record.pod.clone()));
    Place {
        namespace: namespace
            .or_else(|| today.as_ref().map(|today| today.namespace.clone()))
            .unwrap_or_default(),
        pod: pod.or_else(|| today.map(|today| today.pod)).unwrap_or_default(),
    }
}

fn rest(namespace: Option<&ObjectMeta>, env: Option<&ConfigMap>) -> Presence {
    match (namespace, env) {
        (Some(namespace), _) => presence(namespace.deletion_timestamp.is_some()),
        (None, Some(_)) => Presence::Present,
        (None, None) => Presence::Missing,
    }
}
