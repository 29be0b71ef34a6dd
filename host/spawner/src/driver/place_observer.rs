//! The observed state of a lab's place in the cluster.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::custom_resource::environment::NamespaceFate;
use wasmspawner_core::lifecycle::stage::{self, ObservedPod, StagePolicy};
use wasmspawner_core::lifecycle::{Observed, Presence};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::record::{OwnNamespace, Place};

use crate::context::Context;
use wasmspawner_kubernetes::environments::ClaimFollower;
use wasmspawner_kubernetes::observed::{Claim, Follower, NamespaceState, ObservedObjects};

use super::workload_observer::WorkloadObserver;

/// An observer of a lab's place. It combines the watches with the answers to the service's own requests.
pub(crate) struct PlaceObserver {
    follower: Follower,
    /// The objects in the place's cluster.
    store: ObservedObjects,
    reclaim: NamespaceReclaim,
    /// The claim of the place, if it is the lab's own.
    claim: Option<ClaimFollower>,
    /// The workload in whose pods the lab is, if it has no pod of its own.
    workload: Option<WorkloadObserver>,
    /// The uid of the lab's record. Objects whose label does not have it do not belong to the lab.
    spawn: String,
    /// The time for which a namespace of the lab's own is kept after the lab; `None` if it is deleted at once.
    kept_for: Option<SignedDuration>,
    /// The namespace that the service has made for the lab.
    own_namespace: Option<OwnNamespace>,
    /// Places where an earlier lab left objects.
    remains: Vec<Place>,
    /// True once the deletion of the objects at all these places was requested.
    remains_asked: bool,
    /// True if there may be a pod that no watch has shown yet: a creation was begun, and the pod was not read since.
    pod_unknown: bool,
    /// True if, for the same reason, there may be other objects that no watch has shown. No watch shows the objects in
    /// a namespace that stays.
    rest_unknown: bool,
}

impl PlaceObserver {
    /// Begins to observe a place. Nothing is known of it yet except the state that the watches show.
    pub(crate) fn new(context: &Context, key: &SpawnKey, place: Place, spawn: String) -> Self {
        let (reclaim, store) = (context.reclaim(key, &place), context.cluster(&place).store);
        let claim = place.kind.own_claim().zip(context.environments.as_ref());
        Self {
            claim: claim.map(|(claim, environments)| environments.follow_claim(&claim.name)),
            workload: WorkloadObserver::from_place(context, &place, &spawn),
            follower: store.follow(place),
            store,
            reclaim,
            spawn,
            kept_for: context.config.current().kubernetes.namespaces_kept_for(),
            own_namespace: None,
            remains: Vec::new(),
            remains_asked: false,
            pod_unknown: false,
            rest_unknown: false,
        }
    }

    /// Places where an earlier lab left objects.
    pub(crate) fn remains(&self) -> &[Place] {
        &self.remains
    }

    /// Sets the places where an earlier lab left objects.
    pub(crate) fn set_remains(&mut self, remains: Vec<Place>) {
        (self.remains, self.remains_asked) = (remains, false);
    }

    /// Notes that the deletion of everything at the other places was requested. `left` are the places that still have
    /// objects.
    pub(crate) fn remains_asked_to_go(&mut self, left: Vec<Place>) {
        (self.remains, self.remains_asked) = (left, true);
    }

    /// Waits until something at the place has changed.
    pub(crate) async fn changed(&self) {
        if let Some(workload) = &self.workload {
            return workload.changed().await;
        }
        match &self.claim {
            Some(claim) => tokio::select! {
                () = self.follower.changed() => {}
                () = claim.changed() => {}
            },
            None => self.follower.changed().await,
        }
    }

    pub(crate) fn place(&self) -> &Place {
        self.follower.place()
    }

    pub(crate) fn spawn(&self) -> &str {
        &self.spawn
    }

    /// True if the lab's objects are deleted with the namespace of its claim.
    fn goes_with_claim(&self) -> bool {
        self.place().kind.fate() == Some(NamespaceFate::Deleted)
    }

    /// Follows the workers of the pool, too, from now on.
    pub(crate) fn follow_workers(&mut self) {
        self.follower.follow_workers(&self.spawn);
    }

    /// The workers of the pool, if they are followed.
    pub(crate) fn workers(&self) -> Vec<std::sync::Arc<ObservedPod>> {
        self.follower.workers()
    }

    /// The lab's pod, if the watches have shown it.
    pub(crate) fn pod(&self) -> Option<std::sync::Arc<ObservedPod>> {
        if let Some(workload) = &self.workload {
            return workload.pod();
        }
        self.follower.pod().filter(|pod| pod.spawn.as_ref() == Some(&self.spawn))
    }

    /// The lab's own namespace; `None` where namespaces are kept.
    pub(crate) fn namespace(&self) -> Option<NamespaceState> {
        let own = |namespace: &NamespaceState| namespace.spawn.as_deref() == Some(self.spawn.as_str());
        match self.reclaim {
            NamespaceReclaim::Delete => self.follower.namespace().filter(own),
            NamespaceReclaim::Retain | NamespaceReclaim::Single => None,
        }
    }

    /// The namespace of the lab's own, if it is kept after the lab.
    pub(crate) fn kept_namespace(&self) -> Option<NamespaceState> {
        let namespace = self.namespace().filter(|_| self.kept_for.is_some())?;
        let is_made = |own: &OwnNamespace| own.uid == namespace.uid && !own.deleted;
        let kept = !namespace.deleting
            && namespace.kept_as.is_some()
            && self.own_namespace.as_ref().is_some_and(is_made);
        kept.then_some(namespace)
    }

    /// The uid of the lab's own namespace if it is kept, or would be if it still exists.
    pub(crate) fn namespace_to_keep(&self) -> Option<String> {
        if self.namespace().is_some() {
            return self.kept_namespace().map(|kept| kept.uid);
        }
        let own = self.own_namespace.as_ref().filter(|own| !own.deleted && self.kept_for.is_some())?;
        Some(own.uid.clone())
    }

    /// The namespace that the service has made for the lab.
    pub(crate) fn own_namespace(&self) -> Option<&OwnNamespace> {
        self.own_namespace.as_ref()
    }

    /// Counts the namespace that was kept among the objects to delete from now on.
    pub(crate) fn give_up_namespace(&mut self) {
        if let Some(own) = &mut self.own_namespace {
            own.deleted = true;
        }
    }

    /// Keeps no namespace any more, because the lab's record is being deleted; false if that is known already.
    pub(crate) fn keep_nothing(&mut self) -> bool {
        self.kept_for.take().is_some()
    }

    /// Sets the namespace that the service has made for the lab, as the lab's record has it.
    pub(crate) fn set_own_namespace(&mut self, own: Option<OwnNamespace>) {
        self.own_namespace = own;
    }

    /// True if the lab's objects are deleted one by one, so that no watch shows when they are gone.
    fn deletes_each_object(&self) -> bool {
        !self.reclaim.is_deleted() || self.kept_namespace().is_some()
    }

    /// Notes that the place was found in a record after a restart. If the spawn was never ready, a request to create
    /// objects may still have been under way. Nothing is known of the objects in a namespace that stays, unless it
    /// `is_empty`.
    pub(crate) fn recovered(&mut self, ready: bool, wanted: bool, is_empty: bool) {
        // The last request before the service ended may have put a lab into a workload even if the lab was no longer
        // wanted.
        self.pod_unknown = !ready && (wanted || self.workload.is_some());
        self.rest_unknown = !is_empty && (!ready || self.deletes_each_object());
    }

    /// True if the watches have shown the pod of this operation, not that of an earlier spawn of the lab.
    pub(crate) fn has_pod_of(&self, operation: JobId) -> bool {
        if let Some(workload) = &self.workload {
            return workload.has_lab_of(operation);
        }
        self.pod().and_then(|pod| pod.operation) == Some(operation)
    }

    /// Notes that a creation begins. From now on, there may be objects that no watch has shown.
    pub(crate) fn creation_begins(&mut self) {
        (self.pod_unknown, self.rest_unknown) = (true, true);
    }

    /// Notes that the creation has succeeded, in a namespace of the lab's own if it has that uid. Its objects are in the
    /// store.
    pub(crate) fn created(&mut self, namespace: Option<String>) {
        if self.reclaim.is_deleted() {
            self.own_namespace = namespace.map(|uid| OwnNamespace { uid, deleted: false });
        }
        self.pod_unknown = false;
        self.rest_unknown = self.deletes_each_object();
    }

    /// Notes the API server's answer that the lab has no pod.
    pub(crate) fn pod_is_gone(&mut self) {
        self.pod_unknown = false;
    }

    /// Notes the API server's answer that no other objects are left.
    pub(crate) fn rest_is_gone(&mut self) {
        self.rest_unknown = false;
    }

    /// Notes that the pod and the namespace were read into the store.
    pub(crate) fn was_read(&mut self) {
        self.pod_unknown = false;
        self.rest_unknown &= self.deletes_each_object();
    }

    /// Keeps the Kubernetes events about the pod and these claims from now on.
    pub(crate) fn keep_events(&mut self, claims: Vec<Claim>) {
        self.follower.keep_events(claims);
    }

    /// Keeps the Kubernetes events about the existing pod and its claims from now on.
    pub(crate) fn keep_events_of_pod(&mut self) {
        let claims = self.pod().map(|pod| self.claims(&pod.claims)).unwrap_or_default();
        self.keep_events(claims);
    }

    /// Also follows these claims in the lab's namespace.
    pub(crate) fn set_claims(&mut self, names: &[String]) {
        let claims = self.claims(names);
        self.follower.set_claims(claims);
    }

    /// The claims of these names in the lab's namespace.
    fn claims(&self, names: &[String]) -> Vec<Claim> {
        names.iter().map(|name| (self.place().namespace.clone(), name.clone())).collect()
    }

    /// Stops keeping Kubernetes events.
    pub(crate) fn drop_events(&mut self) {
        if self.follower.keeps_events() {
            self.follower.drop_events();
        }
    }

    /// Sets the lab to look for in its workload: the operation that started it, and the pod that it had.
    pub(crate) fn set_lab(&mut self, operation: Option<JobId>, kept: Option<&str>) {
        if let Some(workload) = &mut self.workload {
            workload.set_lab(operation, kept);
        }
    }

    /// Returns the analysed state of the place. `now` is the time of day, which is compared with the cluster's
    /// timestamps.
    pub(crate) fn observe(&self, policy: &StagePolicy, now: Timestamp) -> Observed {
        let (pod, namespace, workers) = (self.pod(), self.namespace(), self.workers());
        let events: Vec<Event> = self.follower.events().iter().map(|event| Event::clone(event)).collect();
        let presence = |deleting: Option<bool>, unknown: bool| match deleting {
            Some(deleting) => Presence::from_deleting(deleting),
            None if unknown => Presence::Present,
            None => Presence::Missing,
        };
        let rest_unknown = self.rest_unknown && !self.goes_with_claim();
        let kept = self.kept_namespace();
        let going = namespace.as_ref().filter(|_| kept.is_none());
        let rest = presence(going.map(|namespace| namespace.deleting), rest_unknown);
        let claim = self.claim.as_ref().and_then(|claim| claim.is_deleting(&self.spawn));
        // A claim whose namespace is deleted with it disappears by itself, and the next lab has another claim.
        let claim = claim.filter(|deleting| !(*deleting && self.goes_with_claim()));
        let claim = claim.map(Presence::from_deleting).unwrap_or_default();
        let elsewhere = match (self.remains.is_empty(), self.remains_asked) {
            (true, _) => Presence::Missing,
            (false, asked) => Presence::from_deleting(asked),
        };
        if let Some(workload) = &self.workload {
            return Observed { rest: rest.max(elsewhere), ..workload.observe(self.pod_unknown, policy, now) };
        }
        Observed {
            // The pods in a cluster that has not answered yet are not known.
            pod: presence(
                pod.as_ref().map(|pod| pod.is_deleting()),
                self.pod_unknown || !self.store.is_synced(),
            ),
            pod_uid: pod.as_ref().and_then(|pod| pod.uid.clone()),
            rest: rest.max(elsewhere).max(claim),
            kept_for: kept.and(self.kept_for),
            // Only the workers of a pool are counted here. The driver knows the children of a lab.
            children: workers
                .iter()
                .map(|pod| Presence::from_deleting(pod.is_deleting()))
                .max()
                .unwrap_or_default(),
            workers: workers.len(),
            is_unsized: false,
            stuck: namespace
                .and_then(|namespace| namespace.stuck)
                .or_else(|| self.claim.as_ref().and_then(ClaimFollower::stuck)),
            analysis: stage::analyze(pod.as_deref(), &events, policy, now),
        }
    }
}
