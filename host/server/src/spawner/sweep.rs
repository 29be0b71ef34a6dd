//! Finds objects of this service that belong to no lab.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::labels::SPAWN_LABEL;
use wasmspawner_core::manifest::{self};
use wasmspawner_core::names::{LabelValue, NamespaceName, ObjectName};
use wasmspawner_core::record::Place;

use super::context::Context;
use super::errors::SpawnError;
use super::labs::Labs;
use super::requests::TRY_FOR;
use crate::k8s::{Causes, KubernetesError, OwnedObject, list};

/// An object with this service's labels that belongs to no record, which happens when somebody deletes or changes
/// records or objects by hand. The service reports it, and never deletes it by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Orphan {
    /// The kind of the object.
    pub kind: OrphanKind,
    /// The object's namespace; `None` for a namespace.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
    /// The uid of the record that its labels name.
    pub spawn: Option<String>,
    /// The object's uid.
    pub uid: Option<String>,
}

/// The kind of an orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrphanKind {
    /// The environment of a lab in a retained namespace. The lab's other objects there cannot be listed, because
    /// the service may not read Secrets; they are deleted together with it.
    ConfigMap,
    /// A lab's own namespace, with everything in it.
    Namespace,
    /// The pod of a lab.
    Pod,
}

impl Labs {
    /// The objects whose labels say that they are this service's, but that belong to no record.
    pub async fn orphans(&self) -> Result<Vec<Orphan>, SpawnError> {
        self.require_ready()?;
        Ok(orphans(self).await?)
    }

    /// Deletes the orphans, and returns those whose deletion was requested.
    pub async fn delete_orphans(&self) -> Result<Vec<Orphan>, SpawnError> {
        self.require_ready()?;
        Ok(delete_orphans(self).await?)
    }
}

/// Reports objects that belong to no record, in the log and the metrics.
pub(super) async fn sweep(labs: &Labs) {
    let orphans = match orphans(labs).await {
        Ok(orphans) => orphans,
        Err(error) => {
            return tracing::warn!(error = %Causes(&error), "orphans cannot be listed now");
        }
    };
    labs.context().metrics.set_orphans(orphans.len());
    for Orphan { kind, namespace, name, spawn, .. } in orphans {
        tracing::warn!(
            ?kind,
            namespace,
            name,
            spawn,
            "an object with this service's labels belongs to no lab; it is left alone"
        );
    }
}

/// The objects that belong to no record, sorted.
async fn orphans(labs: &Labs) -> Result<Vec<Orphan>, KubernetesError> {
    let store = &labs.context().own_cluster().store;
    // The objects are listed before the records are read: otherwise a lab that is accepted in between would look like
    // an orphan.
    let (pods, namespaces) = (store.pods(), store.namespaces());
    let environments = environments(labs).await?;
    let known: HashSet<String> = labs.records().into_iter().collect();
    let unknown = |spawn: Option<&String>| spawn.is_none_or(|spawn| !known.contains(spawn));
    let pods = pods.iter().filter(|pod| unknown(pod.spawn.as_ref())).map(|pod| Orphan {
        kind: OrphanKind::Pod,
        namespace: Some(pod.namespace.clone()),
        name: pod.name.clone(),
        spawn: pod.spawn.clone(),
        uid: pod.uid.clone(),
    });
    // A namespace without the label is a retained one, not a lab's own.
    let namespaces = namespaces.into_iter().filter(|(_, state)| state.spawn.is_some());
    let namespaces =
        namespaces.filter(|(_, state)| unknown(state.spawn.as_ref())).map(|(name, state)| Orphan {
            kind: OrphanKind::Namespace,
            namespace: None,
            name,
            spawn: state.spawn,
            uid: Some(state.uid),
        });
    let environments = environments.into_iter().filter(|environment| unknown(environment.spawn.as_ref()));
    let mut orphans: Vec<Orphan> = pods.chain(namespaces).chain(environments).collect();
    orphans.sort();
    Ok(orphans)
}

/// The environments of labs in namespaces that stay. Elsewhere they are deleted with their namespace.
async fn environments(labs: &Labs) -> Result<Vec<Orphan>, KubernetesError> {
    let context = labs.context();
    if context.config.current().kubernetes.namespaces.is_deleted() {
        return Ok(Vec::new());
    }
    let maps: Api<PartialObjectMeta<ConfigMap>> =
        context.reach().all(context.own_cluster().connection.requests.clone());
    let selector = manifest::environment_selector(&context.config.current().kubernetes.instance);
    let found = list(&maps, &selector, "list the environments of labs").await?;
    let environments = found.into_iter().map(|PartialObjectMeta { metadata, .. }| Orphan {
        kind: OrphanKind::ConfigMap,
        namespace: metadata.namespace,
        name: metadata.name.unwrap_or_default(),
        spawn: metadata.labels.as_ref().and_then(|labels| labels.get(SPAWN_LABEL)).cloned(),
        uid: metadata.uid,
    });
    Ok(environments.collect())
}

/// Deletes the orphans at an administrator's request. Returns those whose deletion was requested.
async fn delete_orphans(labs: &Labs) -> Result<Vec<Orphan>, KubernetesError> {
    let context = labs.context();
    let mut deleted = Vec::new();
    for orphan in orphans(labs).await? {
        if !delete(context, &orphan).await? {
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
    match orphan.kind {
        OrphanKind::Namespace => {
            context.own_cluster().deleter.delete_namespace(&orphan.name, own, TRY_FOR).await?;
        }
        OrphanKind::Pod => {
            let (Ok(namespace), Ok(pod)) = (namespace(), ObjectName::parse(orphan.name.as_str())) else {
                return Ok(false);
            };
            let grace = context.config.current().lab.section.termination_grace_period_seconds;
            context
                .own_cluster()
                .deleter
                .delete_pod(&Place { namespace, pod, cluster: None, claim: None }, own, grace, TRY_FOR)
                .await?;
        }
        OrphanKind::ConfigMap => {
            let (Ok(namespace), Ok(spawn)) = (namespace(), LabelValue::parse(own.spawn)) else {
                return Ok(false);
            };
            let shared = context.config.current().kubernetes.namespaces == NamespaceReclaim::Single;
            let selector = manifest::spawn_selector(&context.config.current().kubernetes.instance, &spawn);
            context
                .own_cluster()
                .deleter
                .delete_lab_objects(namespace.as_str(), &selector, shared, &[], TRY_FOR)
                .await?;
        }
    }
    Ok(true)
}
