//! Finds objects of this service that belong to no lab.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::config::lab::Entrance;
use wasmspawner_core::manifest::{self};
use wasmspawner_core::names::labels::SPAWN_LABEL;
use wasmspawner_core::names::{LabelValue, NamespaceName, ObjectName};
use wasmspawner_core::record::{Place, PlaceKind};

use crate::context::Context;
use crate::driver::requests::TRY_FOR;
use crate::errors::SpawnError;
use crate::labs::Labs;
use crate::upkeep::leftovers::Leftovers;
use wasmspawner_kubernetes::k8s::{Causes, KubernetesError, OwnedObject, list};
use wasmspawner_kubernetes::observed::ObservedObjects;

/// An object with this service's labels that belongs to no record. This happens when somebody deletes or changes
/// records or objects by hand. The service reports it, and never deletes it by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Orphan {
    /// The Secret with which the object's cluster is reached; `None` for the service's own cluster.
    pub cluster: Option<ObjectName>,
    /// The kind of the object.
    pub kind: OrphanKind,
    /// The object's namespace; `None` for a namespace.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
    /// The uid of the record that its labels name.
    pub spawn: Option<String>,
    /// The uid of the target that a namespace was made for.
    pub target: Option<String>,
    /// The object's uid.
    pub uid: Option<String>,
}

/// The kind of an orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrphanKind {
    /// The environment of a lab in a retained namespace. The lab's other objects there cannot be listed, because
    /// the service may not read Secrets; they are deleted together with it.
    ConfigMap,
    /// The namespace of a lab or of a target, with everything in it.
    Namespace,
    /// The pod of a lab.
    Pod,
}

impl Leftovers {
    /// Lists the objects with this service's labels that belong to no record.
    pub async fn orphans(&self) -> Result<Vec<Orphan>, SpawnError> {
        self.0.require_ready()?;
        Ok(orphans(&self.0).await?)
    }

    /// Deletes the orphans in the service's own cluster, and returns those whose deletion was requested. Other clusters
    /// are left alone, because another site may have labs there whose installation has the same name.
    pub async fn delete_orphans(&self) -> Result<Vec<Orphan>, SpawnError> {
        self.0.require_ready()?;
        self.0.require_all_readable()?;
        Ok(delete_orphans(&self.0).await?)
    }
}

/// Reports objects that belong to no record, in the log and the metrics.
pub(crate) async fn sweep(labs: &Labs) {
    let orphans = match orphans(labs).await {
        Ok(orphans) => orphans,
        Err(error) => {
            return tracing::warn!(error = %Causes(&error), "orphans cannot be listed now");
        }
    };
    labs.context().metrics.set_orphans(orphans.len());
    for Orphan { cluster, kind, namespace, name, spawn, target, .. } in orphans {
        tracing::warn!(
            cluster = cluster.as_ref().map(ObjectName::as_str),
            ?kind,
            namespace,
            name,
            spawn,
            target,
            "an object with this service's labels belongs to no lab; it is left alone"
        );
    }
}

/// Lists the objects that belong to no record and no target, sorted.
async fn orphans(labs: &Labs) -> Result<Vec<Orphan>, KubernetesError> {
    let context = labs.context();
    // The objects are listed before the records are read: otherwise a lab that is accepted in between would look like
    // an orphan.
    let mut found = in_store(&context.own_cluster().store, None);
    for (reference, cluster) in context.clusters.others_known() {
        found.extend(in_store(&cluster.store, Some(&reference.secret)));
    }
    found.extend(environments(labs).await?);
    let known: HashSet<String> = labs.records().into_iter().collect();
    let belongs = |orphan: &Orphan| match (&orphan.spawn, &orphan.target, &context.environments) {
        (Some(spawn), _, _) => known.contains(spawn),
        (None, Some(target), Some(environments)) => environments.has_target(target),
        // Without environments, the existing targets are not known.
        (None, Some(_), None) => true,
        (None, None, _) => false,
    };
    found.retain(|orphan| !belongs(orphan));
    found.sort();
    Ok(found)
}

/// Lists the pods in one cluster, and the namespaces that were made for labs and targets. Other namespaces are retained
/// ones.
fn in_store(store: &ObservedObjects, cluster: Option<&ObjectName>) -> Vec<Orphan> {
    let pods = store.pods().into_iter().map(|pod| Orphan {
        cluster: cluster.cloned(),
        kind: OrphanKind::Pod,
        namespace: Some(pod.namespace.clone()),
        name: pod.name.clone(),
        spawn: pod.spawn.clone(),
        target: None,
        uid: pod.uid.clone(),
    });
    let made = store.namespaces().into_iter();
    let made = made.filter(|(_, state)| state.spawn.is_some() || state.target.is_some());
    let namespaces = made.map(|(name, state)| Orphan {
        cluster: cluster.cloned(),
        kind: OrphanKind::Namespace,
        namespace: None,
        name,
        spawn: state.spawn,
        target: state.target,
        uid: Some(state.uid),
    });
    pods.chain(namespaces).collect()
}

/// Lists the environments of labs in namespaces that stay. Elsewhere, they are deleted with their namespace.
async fn environments(labs: &Labs) -> Result<Vec<Orphan>, KubernetesError> {
    let context = labs.context();
    if context.config.current().kubernetes.namespaces.is_deleted() {
        return Ok(Vec::new());
    }
    let maps: Api<PartialObjectMeta<ConfigMap>> =
        context.reach().all(context.own_cluster().connection.requests.clone());
    let selector = manifest::environment_selector(&context.config.current().kubernetes.instance());
    let found = list(&maps, &selector, "list the environments of labs").await?;
    let environments = found.into_iter().map(|PartialObjectMeta { metadata, .. }| Orphan {
        cluster: None,
        kind: OrphanKind::ConfigMap,
        namespace: metadata.namespace,
        name: metadata.name.unwrap_or_default(),
        spawn: metadata.labels.as_ref().and_then(|labels| labels.get(SPAWN_LABEL)).cloned(),
        target: None,
        uid: metadata.uid,
    });
    Ok(environments.collect())
}

/// Deletes the orphans at an administrator's request. Returns those whose deletion was requested.
async fn delete_orphans(labs: &Labs) -> Result<Vec<Orphan>, KubernetesError> {
    let context = labs.context();
    let mut deleted = Vec::new();
    for orphan in orphans(labs).await? {
        if orphan.cluster.is_some() || !delete(context, &orphan).await? {
            continue;
        }
        tracing::info!(
            kind = ?orphan.kind,
            namespace = orphan.namespace,
            name = orphan.name,
            "an object that belongs to no lab is deleted, as an administrator wants"
        );
        deleted.push(orphan);
    }
    Ok(deleted)
}

/// Requests the deletion of one orphan; false if this service cannot have made the object.
async fn delete(context: &Context, orphan: &Orphan) -> Result<bool, KubernetesError> {
    let Some(uid) = &orphan.uid else { return Ok(false) };
    let own = OwnedObject { spawn: orphan.spawn.clone().unwrap_or_default(), uid: Some(uid.clone()) };
    let namespace = || NamespaceName::parse(orphan.namespace.clone().unwrap_or_default());
    let cluster = context.own_cluster();
    match orphan.kind {
        OrphanKind::Namespace => match (&orphan.spawn, &orphan.target) {
            (None, Some(target)) => drop(cluster.targets.delete_namespace(&orphan.name, target).await?),
            _ => drop(cluster.deleter.delete_namespace(&orphan.name, own, TRY_FOR).await?),
        },
        OrphanKind::Pod => {
            let (Ok(namespace), Ok(pod)) = (namespace(), ObjectName::parse(orphan.name.as_str())) else {
                return Ok(false);
            };
            let grace = context.config.current().lab.section.termination_grace_period_seconds;
            let place = Place { namespace, pod, kind: PlaceKind::Configured, entrance: Entrance::Pod };
            cluster.deleter.delete_pod(&place, own, grace, TRY_FOR).await?;
        }
        OrphanKind::ConfigMap => {
            let (Ok(namespace), Ok(spawn)) = (namespace(), LabelValue::parse(own.spawn)) else {
                return Ok(false);
            };
            let shared = context.config.current().kubernetes.namespaces == NamespaceReclaim::Single;
            let selector = manifest::spawn_selector(&context.config.current().kubernetes.instance(), &spawn);
            let namespace = namespace.as_str();
            let more = context.kinds_in_own_cluster();
            cluster.deleter.delete_lab_objects(namespace, &selector, shared, &more, TRY_FOR).await?;
        }
    }
    Ok(true)
}
