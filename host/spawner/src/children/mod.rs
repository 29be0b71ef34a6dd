//! The children that labs start: kernels and Dask pools. They are spawns with drivers of their own. They end with their
//! lab, before it; only a pool that is to outlive its lab goes on.

pub(crate) mod kernels;
pub(crate) mod pools;

use std::sync::Arc;
use std::time::Duration;

use wasmspawner_core::children::dask::WorkerRange;
use wasmspawner_core::lifecycle::{LabStatus, Presence};
use wasmspawner_core::manifest::ParentPod;
use wasmspawner_core::names::LabelValue;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::spawn_key::{ChildKey, ChildKind, SpawnKey};
use wasmspawner_core::policy::spawn::ChildRequest;
use wasmspawner_core::policy::{Options, Subject, SubjectChild};
use wasmspawner_core::record::PoolDescription;
use wasmspawner_core::values::secret::SecretString;

use super::errors::SpawnError;
use super::labs::Labs;
use crate::decide::approve::{ServiceLink, approve_child, digest};
use crate::decide::running_lab::RunningLab;
use crate::driver::requests::TaskResult;
use crate::labs::message::StopRequest;
use crate::labs::registry::Handle;
use crate::published::view::View;
use wasmspawner_kubernetes::random_token::random_token;

/// The pause after a failed attempt to stop a child, before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);

impl Labs {
    /// Starts a child of a lab. Returns when the start has begun; the events report the rest.
    pub(crate) async fn start_child(&self, request: ChildRequest) -> Result<(), SpawnError> {
        let key = request.key();
        let begun = self.begin_child(&key, request).await;
        self.heard(&key, begun)
    }

    async fn begin_child(&self, key: &SpawnKey, request: ChildRequest) -> Result<(), SpawnError> {
        self.can_spawn(key)?;
        let lab = self.running_lab(&key.lab)?;
        let turn = self.turn_of(&key.lab.user).await?;
        let so_far = self.use_beside(key);
        let workers = self.pool_links().workers_of_others(key);
        let names = self.context().names(&key.lab)?;
        let link = self.link_of(&request)?;
        let rules = self.context().rules();
        let approved = approve_child(&rules, names, request, lab, link, so_far, workers).await?;
        self.begin(key, approved, turn).await
    }

    fn link_of(&self, request: &ChildRequest) -> Result<ServiceLink, SpawnError> {
        let config = self.context().config.current();
        let api = config.lab.api_url.as_deref().ok_or(SpawnError::NoChildren)?;
        let token = SecretString::new(random_token());
        Ok(ServiceLink { url: format!("{api}{}", request.path), token })
    }

    /// The keys of a lab's children of one kind, sorted by their names.
    pub(crate) fn children_of_kind(&self, lab: &LabKey, kind: ChildKind) -> Vec<SpawnKey> {
        let of_kind = |key: &SpawnKey| key.child.as_ref().is_some_and(|child| child.kind == kind);
        let registry = self.registry();
        let exists = |handle: &Handle| handle.view.borrow().snapshot.is_some();
        let children = registry.children(lab).filter(|(key, handle)| of_kind(key) && exists(handle));
        let mut keys: Vec<SpawnKey> = children.map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    /// Counts the children of each kind in each status, zeros included.
    pub fn count_children(&self) -> Vec<(ChildKind, LabStatus, usize)> {
        let registry = self.registry();
        let present = registry.iter().filter_map(|(key, handle)| {
            let status = handle.view.borrow().snapshot.as_ref()?.status;
            Some((key.child.as_ref()?.kind, status))
        });
        let present: Vec<(ChildKind, LabStatus)> = present.collect();
        let kinds = [ChildKind::Kernel, ChildKind::DaskPool].into_iter();
        let each = kinds.flat_map(|kind| LabStatus::ALL.map(|status| (kind, status)));
        each.map(|(kind, status)| {
            (kind, status, present.iter().filter(|child| **child == (kind, status)).count())
        })
        .collect()
    }

    /// True if this is the token that the service has given to the program in the child's pod.
    pub fn is_token_of(&self, key: &SpawnKey, token: &SecretString) -> bool {
        let presented = digest(token);
        self.lab(key).is_some_and(|child| child.about.description.token_digest() == Some(&presented))
    }

    /// The most connections that programs in pods may hold: half of all, because the rest is for the Hub and for
    /// people.
    pub(crate) fn most_connections_of_pods(&self) -> usize {
        (self.context().config.current().http.max_connections / 2).max(1)
    }

    /// Describes a lab or a child to the policies, for an action on it. `workers` is given if a pool is about to have
    /// another number of them.
    pub(crate) fn subject(&self, key: &SpawnKey, workers: Option<WorkerRange>) -> Subject {
        let description = self.lab(key).map(|spawn| Arc::clone(&spawn.about.description));
        let about = |child: &ChildKey| {
            let description = description.as_ref();
            let kernel = description.and_then(|about| about.kernel.as_ref());
            let pool = description.and_then(|about| about.pool.as_ref());
            SubjectChild {
                kind: child.kind,
                name: kernel.map_or_else(|| child.name.to_string(), |kernel| kernel.name.clone()),
                workers: workers.or(pool.map(PoolDescription::total)).map_or(0, |workers| workers.maximum),
            }
        };
        Subject {
            child: key.child.as_ref().map(about),
            use_of_user: self.registry().use_beside(key),
            past_days: Arc::new(self.context().history.days_of(&key.lab.user)),
            blueprint: None,
            last_options: Options::new(),
        }
    }

    /// Returns the lab if it is running.
    fn running_lab(&self, lab: &LabKey) -> Result<RunningLab, SpawnError> {
        self.require_readable(&lab.clone().into())?;
        let view = self.view(&lab.clone().into());
        let snapshot = view.as_ref().and_then(|view| view.snapshot.clone()).ok_or(SpawnError::NoLab)?;
        if snapshot.status != LabStatus::Running {
            return Err(SpawnError::LabNotRunning);
        }
        if view
            .as_ref()
            .and_then(|view| view.place.as_ref())
            .is_some_and(|place| place.kind.workload().is_some())
        {
            return Err(SpawnError::NoChildrenInWorkloads);
        }
        let known = view.and_then(|view| {
            let (place, uid) = (view.place?, view.pod_uid?);
            let pod =
                ParentPod { name: place.pod.to_string(), uid, spawn: LabelValue::parse(view.record?).ok()? };
            Some(RunningLab { place, pod, description: Arc::clone(&snapshot.about.description) })
        });
        // The pod of a running lab can be missing for a moment, until the lab ends too.
        known.ok_or(SpawnError::LabNotRunning)
    }

    /// True while the lab runs in this pod.
    pub(crate) fn is_running_as(&self, lab: &LabKey, pod: &ParentPod) -> bool {
        self.view(&lab.clone().into()).is_some_and(|view| {
            let alive = view
                .snapshot
                .is_some_and(|lab| matches!(lab.status, LabStatus::Running | LabStatus::Starting));
            alive
                && view.record.as_deref() == Some(pod.spawn.as_str())
                && view.pod_uid.as_ref() == Some(&pod.uid)
        })
    }

    /// The presence of children that end before the lab.
    pub(crate) fn children_of(&self, lab: &LabKey) -> Presence {
        let registry = self.registry();
        let presence = |view: &View| match &view.snapshot {
            Some(child) if child.status != LabStatus::Terminating => Presence::Present,
            Some(_) => Presence::Terminating,
            None if view.record.is_some() => Presence::Terminating,
            None => Presence::Missing,
        };
        let views = registry.children(lab).map(|(_, handle)| handle.view.borrow());
        views.filter(|view| !view.outlives_lab()).map(|view| presence(&view)).max().unwrap_or_default()
    }

    /// Begins to stop the children of a lab.
    pub(crate) async fn stop_children(&self, lab: &LabKey) -> TaskResult {
        let children: Vec<SpawnKey> = {
            let registry = self.registry();
            let ends = |handle: &Handle| {
                let view = handle.view.borrow();
                view.snapshot.is_some() && !view.outlives_lab()
            };
            registry.children(lab).filter(|(_, handle)| ends(handle)).map(|(key, _)| key.clone()).collect()
        };
        let stops = children.iter().map(async |child| {
            let request = StopRequest {
                because: Some("The lab is being stopped".to_owned()),
                ..StopRequest::by("wasmspawner")
            };
            if let Err(error) = self.ask_stop(child, request).await {
                tracing::debug!(%child, %error, "a child of a lab cannot be stopped now; it is tried again");
            }
        });
        futures::future::join_all(stops).await;
        TaskResult::ChildrenStopping
    }

    /// Stops a child whose lab does not run any more.
    pub(crate) async fn stop_orphan(&self, child: &SpawnKey) {
        tracing::info!(%child, "a child is stopped because its lab has ended");
        loop {
            match self.ask_stop(child, StopRequest::by("wasmspawner")).await {
                Ok(()) | Err(SpawnError::Refused(_)) => return,
                Err(error) => tracing::warn!(%child, %error, "it cannot be stopped now; it is tried again"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stops the children whose labs have ended while the service did not run.
    pub(crate) fn stop_orphans(&self) {
        let orphans: Vec<SpawnKey> = {
            let registry = self.registry();
            let alive = |lab: &LabKey| {
                let key = SpawnKey::from(lab.clone());
                let runs = |handle: &Handle| {
                    let view = handle.view.borrow();
                    view.snapshot.as_ref().is_some_and(|lab| lab.status != LabStatus::Failed)
                };
                // A lab whose record cannot be read may run.
                registry.get(&key).is_some_and(runs) || self.unreadable().record_of(&key).is_some()
            };
            let ends = |handle: &Handle| !handle.view.borrow().outlives_lab();
            let children = registry.iter().filter(|(key, handle)| !key.is_lab() && ends(handle));
            children.map(|(key, _)| key).filter(|key| !alive(&key.lab)).cloned().collect()
        };
        for child in orphans {
            let labs = self.clone();
            tokio::spawn(async move { labs.stop_orphan(&child).await });
        }
    }
}
