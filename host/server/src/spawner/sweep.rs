//! Looking for what belongs to nobody.

use std::collections::HashSet;

use wasmspawner_core::manifest::SPAWN_LABEL;
use wasmspawner_core::names::{NamespaceName, ObjectName};
use wasmspawner_core::record::Place;

use super::labs::Labs;
use super::requests::TRY_FOR;
use crate::k8s::{KubernetesError, Own};

/// An object of this service's that no record names: somebody has interfered. It is reported, and never deleted by the
/// service on its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Orphan {
    /// `Namespace` or `Pod`.
    pub kind: &'static str,
    /// Where a pod is; nothing for a namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The record that it says to belong to.
    pub spawn: Option<String>,
    /// Which one of that name.
    pub uid: Option<String>,
}

/// Reports what belongs to no record.
pub(super) fn sweep(labs: &Labs) {
    let orphans = orphans(labs);
    labs.site().metrics.set_orphans(orphans.len());
    for Orphan { kind, namespace, name, spawn, .. } in orphans {
        tracing::warn!(
            kind,
            namespace,
            name,
            spawn,
            "an object with this service's labels belongs to no lab; it is left alone"
        );
    }
}

/// What belongs to no record, sorted.
pub(super) fn orphans(labs: &Labs) -> Vec<Orphan> {
    let store = &labs.site().store;
    // What is listed before the records are asked for cannot be of a lab that is accepted meanwhile.
    let (pods, namespaces) = (store.pods(), store.namespaces());
    let known: HashSet<String> = labs.records().into_iter().collect();
    let unknown = |spawn: Option<&String>| spawn.is_none_or(|spawn| !known.contains(spawn));
    let pods = pods.iter().filter_map(|pod| {
        let spawn = pod.metadata.labels.as_ref().and_then(|labels| labels.get(SPAWN_LABEL));
        unknown(spawn).then(|| Orphan {
            kind: "Pod",
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone().unwrap_or_default(),
            spawn: spawn.cloned(),
            uid: pod.metadata.uid.clone(),
        })
    });
    // A namespace without the label is one that stays.
    let namespaces = namespaces.into_iter().filter(|(_, state)| state.spawn.is_some());
    let namespaces = namespaces.filter(|(_, state)| unknown(state.spawn.as_ref())).map(|(name, state)| {
        Orphan { kind: "Namespace", namespace: None, name, spawn: state.spawn, uid: Some(state.uid) }
    });
    let mut orphans: Vec<Orphan> = pods.chain(namespaces).collect();
    orphans.sort();
    orphans
}

/// Deletes what belongs to no record, because an administrator wants it gone. Answers what was asked to go.
pub(super) async fn delete_orphans(labs: &Labs) -> Result<Vec<Orphan>, KubernetesError> {
    let site = labs.site();
    let mut deleted = Vec::new();
    for orphan in orphans(labs) {
        let own = Own { spawn: orphan.spawn.clone().unwrap_or_default(), uid: orphan.uid.clone() };
        if own.uid.is_none() {
            continue;
        }
        match &orphan.namespace {
            Some(namespace) => {
                let (Ok(namespace), Ok(pod)) =
                    (NamespaceName::parse(namespace.as_str()), ObjectName::parse(orphan.name.as_str()))
                else {
                    continue;
                };
                let grace = site.config.lab.config.termination_grace_period_seconds;
                site.deleter.pod(&Place { namespace, pod }, own, grace, TRY_FOR).await?;
            }
            None => {
                site.deleter.namespace(&orphan.name, own, TRY_FOR).await?;
            }
        }
        tracing::info!(
            kind = orphan.kind,
            namespace = orphan.namespace,
            name = orphan.name,
            "an object that belongs to no lab is deleted, as an administrator wants"
        );
        deleted.push(orphan);
    }
    Ok(deleted)
}
