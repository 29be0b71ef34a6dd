//! Deletes the objects of a lab.

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Preconditions};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::manifest::{
    CERTIFICATES, CLAIMS, KINDS_BESIDE_WORKLOAD, KINDS_DELETED_BY_LABEL, ObjectKind,
};
use wasmspawner_core::record::Place;

use super::create::{api_resource, belongs_to};
use super::error::says_no_such_kind;
use super::retry::{RetryPolicy, retrying};
use super::{KubernetesError, StatusReason};
use crate::watches::Readable;

/// The result of a request to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionAnswer {
    /// The object is being deleted.
    Accepted,
    /// The object did not exist.
    Gone,
}

/// The identity of a lab's own object, which distinguishes it from others that have had the same name.
#[derive(Debug, Clone)]
pub struct OwnedObject {
    /// The uid of the record that the object must belong to.
    pub spawn: String,
    /// The object's own uid, if it is known. Otherwise the object is read first.
    pub uid: Option<String>,
}

/// Deletes the objects of labs and nothing else. An object is deleted by its uid, once it is known to belong to the
/// lab.
#[derive(Clone)]
pub struct Deleter {
    client: Client,
    namespaces: NamespaceReclaim,
    request_timeout: Duration,
}

impl Deleter {
    /// Creates a `Deleter` for `client`. `namespaces` says whether the namespace of a lab is deleted. Each request may
    /// take `request_timeout`.
    pub fn new(client: Client, namespaces: NamespaceReclaim, request_timeout: Duration) -> Self {
        Self { client, namespaces, request_timeout }
    }

    /// Deletes a pod. Its containers have `grace_seconds` to end.
    pub async fn delete_pod(
        &self,
        place: &Place,
        own: OwnedObject,
        grace_seconds: u32,
        within: Duration,
    ) -> Result<DeletionAnswer, KubernetesError> {
        let pods: Api<Readable<Pod>> = Api::namespaced(self.client.clone(), place.namespace.as_str());
        let params = DeleteParams { grace_period_seconds: Some(grace_seconds), ..DeleteParams::background() };
        self.delete_own(&pods, place.pod.as_str(), own, params, within).await
    }

    /// Deletes a namespace and everything in it.
    pub async fn delete_namespace(
        &self,
        name: &str,
        own: OwnedObject,
        within: Duration,
    ) -> Result<DeletionAnswer, KubernetesError> {
        let namespaces: Api<Readable<Namespace>> = Api::all(self.client.clone());
        self.delete_own(&namespaces, name, own, DeleteParams::background(), within).await
    }

    /// Deletes what a lab without a pod has in its own namespace, which is kept for the next lab and has the uid in `own`.
    /// `selector` selects the objects, which may be of the kinds in `more`, too; `all` selects all of the service's, of which
    /// the claims are deleted: they are the lab's or its children's. Another namespace of the lab is deleted.
    pub async fn empty_namespace(
        &self,
        name: &str,
        own: OwnedObject,
        (selector, all): (&str, &str),
        more: &[ObjectKind],
        within: Duration,
    ) -> Result<DeletionAnswer, KubernetesError> {
        let namespaces: Api<Readable<Namespace>> = Api::all(self.client.clone());
        let retry_policy = RetryPolicy::from_timeouts(self.request_timeout, within);
        let read = || namespaces.get_opt(name);
        let found = retrying(&retry_policy, &format!("read Namespace {name}"), read).await?;
        let Some(found) = found.map(Readable::required).transpose()? else { return Ok(DeletionAnswer::Gone) };
        if !belongs_to(&found.metadata, &own.spawn) {
            Ok(DeletionAnswer::Gone)
        } else if found.metadata.deletion_timestamp.is_some() {
            Ok(DeletionAnswer::Accepted)
        } else if found.metadata.uid == own.uid {
            match self.delete_all(&CLAIMS, name, all, within).await {
                // The permissions are those of a version that kept no namespaces.
                Err(KubernetesError::Refused { reason: StatusReason::Forbidden, .. }) => {
                    self.delete_namespace(name, own, within).await
                }
                Err(error) => Err(error),
                Ok(()) => self.delete_lab_objects(name, selector, false, more, within).await,
            }
        } else {
            self.delete_namespace(name, OwnedObject { uid: found.metadata.uid, ..own }, within).await
        }
    }

    /// Reads the pod of a lab directly from the API server, and its namespace if that is the lab's own.
    pub async fn read(
        &self,
        place: &Place,
        within: Duration,
    ) -> Result<(Option<Pod>, Option<Namespace>), KubernetesError> {
        let retry_policy = RetryPolicy::from_timeouts(self.request_timeout, within);
        let pods: Api<Readable<Pod>> = Api::namespaced(self.client.clone(), place.namespace.as_str());
        let namespaces: Api<Readable<Namespace>> = Api::all(self.client.clone());
        let namespace = async {
            if !self.namespaces.is_deleted() {
                return Ok(None);
            }
            let read = || namespaces.get_opt(place.namespace.as_str());
            retrying(&retry_policy, "read the lab's Namespace", read).await
        };
        let (pod, namespace) = tokio::try_join!(
            retrying(&retry_policy, "read the lab's Pod", || pods.get_opt(place.pod.as_str())),
            namespace,
        )?;
        Ok((pod.map(Readable::required).transpose()?, namespace.map(Readable::required).transpose()?))
    }

    /// Deletes the objects of a lab that `selector` selects in a retained namespace, including those of the kinds in
    /// `more`. Volume claims and the pod are not deleted here. The limits of a namespace that labs share (`shared`)
    /// stay as well, because they belong to its operator.
    pub async fn delete_lab_objects(
        &self,
        namespace: &str,
        selector: &str,
        shared: bool,
        more: &[ObjectKind],
        within: Duration,
    ) -> Result<DeletionAnswer, KubernetesError> {
        // Objects that make Secrets are deleted before the Secrets. Otherwise they would make them again.
        let (makers, more): (Vec<&ObjectKind>, Vec<_>) = more.iter().partition(|kind| **kind == CERTIFICATES);
        try_join_all(makers.into_iter().map(|kind| self.delete_all(kind, namespace, selector, within)))
            .await?;
        let kinds =
            KINDS_DELETED_BY_LABEL.iter().chain(more).filter(|kind| !(shared && kind.limits_namespace()));
        try_join_all(kinds.map(|kind| self.delete_all(kind, namespace, selector, within))).await?;
        Ok(DeletionAnswer::Gone)
    }

    /// Deletes the objects of a lab that runs in a workload. Such a lab has no objects of other kinds.
    pub async fn delete_objects_beside_workload(
        &self,
        namespace: &str,
        selector: &str,
        within: Duration,
    ) -> Result<(), KubernetesError> {
        let kinds = KINDS_BESIDE_WORKLOAD.iter();
        try_join_all(kinds.map(|kind| self.delete_all(kind, namespace, selector, within))).await.map(drop)
    }

    async fn delete_all(
        &self,
        kind: &ObjectKind,
        namespace: &str,
        selector: &str,
        within: Duration,
    ) -> Result<(), KubernetesError> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &api_resource(kind));
        let retry_policy = RetryPolicy::from_timeouts(self.request_timeout, within);
        let (params, selected) = (DeleteParams::background(), ListParams::default().labels(selector));
        let action = format!("delete each {} of the lab in {namespace}", kind.kind);
        match retrying(&retry_policy, &action, || api.delete_collection(&params, &selected)).await {
            // A kind that is not installed any more has no objects.
            Err(KubernetesError::Refused { message, .. }) if says_no_such_kind(&message) => Ok(()),
            answer => answer.map(drop),
        }
    }

    async fn delete_own<K>(
        &self,
        api: &Api<K>,
        name: &str,
        own: OwnedObject,
        params: DeleteParams,
        within: Duration,
    ) -> Result<DeletionAnswer, KubernetesError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let retry_policy = RetryPolicy::from_timeouts(self.request_timeout, within);
        let action = format!("delete {} {name}", K::kind(&()));
        let mut uid = own.uid;
        loop {
            let looked = uid.is_none();
            if looked {
                match retrying(&retry_policy, &action, || api.get_opt(name)).await? {
                    // The object that has the name now belongs to somebody else, so the lab's own is gone.
                    Some(found) if belongs_to(found.meta(), &own.spawn) => {
                        uid.clone_from(&found.meta().uid);
                    }
                    _ => return Ok(DeletionAnswer::Gone),
                }
            }
            let preconditions = Some(Preconditions { uid: uid.clone(), resource_version: None });
            let params = DeleteParams { preconditions, ..params.clone() };
            match retrying(&retry_policy, &action, || api.delete(name, &params)).await {
                Ok(_) => return Ok(DeletionAnswer::Accepted),
                Err(KubernetesError::Refused { reason: StatusReason::NotFound, .. }) => {
                    return Ok(DeletionAnswer::Gone);
                }
                // Another object has the name by now, or the namespace controller is deleting this one already.
                Err(KubernetesError::Refused { reason: StatusReason::Conflict, .. }) if looked => {
                    return Ok(DeletionAnswer::Accepted);
                }
                Err(KubernetesError::Refused { reason: StatusReason::Conflict, .. }) => uid = None,
                Err(error) => return Err(error),
            }
        }
    }
}
