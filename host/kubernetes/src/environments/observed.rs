//! The claims, targets and classes that the watches have shown.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};
use wasmspawner_core::custom_resource::Object;
use wasmspawner_core::custom_resource::environment::{Claim, Class, Environment, Target, TargetCheck, World};

use crate::k8s::{CustomChange, belongs_to};

/// The objects that the watches have shown, and the answers to the service's own requests.
pub(super) struct ObservedEnvironments {
    world: Mutex<World>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    /// The followers of each claim, by its name.
    followers: Mutex<HashMap<String, Vec<Arc<Notify>>>>,
    /// True for each kind that has been listed once: classes, claims, targets, environments.
    listed: watch::Sender<[bool; 4]>,
}

impl Default for ObservedEnvironments {
    fn default() -> Self {
        Self {
            world: Mutex::default(),
            changes: watch::Sender::new(0),
            followers: Mutex::default(),
            listed: watch::Sender::new([false; 4]),
        }
    }
}

impl ObservedEnvironments {
    /// Reads the known objects.
    pub(super) fn with<T>(&self, read: impl FnOnce(&World) -> T) -> T {
        read(&self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the known objects, and notifies all receivers.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = change(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner));
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    /// Reads the known objects together with the namespaces of targets. Nobody is notified, because these namespaces
    /// are of no concern to others.
    pub(super) fn decide<T>(&self, decide: impl FnOnce(&mut World) -> T) -> T {
        decide(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn follow(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) async fn first_sync(&self) {
        // The sender is a part of this value, so waiting cannot fail.
        let _ = self.listed.subscribe().wait_for(|listed| listed.iter().all(|listed| *listed)).await;
    }

    pub(super) fn add_follower(&self, claim: &str, wake: &Arc<Notify>) {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.entry(claim.to_owned()).or_default().push(Arc::clone(wake));
    }

    pub(super) fn drop_follower(&self, claim: &str, wake: &Arc<Notify>) {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(here) = followers.get_mut(claim) {
            here.retain(|other| !Arc::ptr_eq(other, wake));
            if here.is_empty() {
                followers.remove(claim);
            }
        }
    }

    /// Wakes the followers of a claim; all of them for `None`.
    fn wake(&self, claim: Option<&str>) {
        let followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        match claim {
            Some(claim) => followers.get(claim).into_iter().flatten().for_each(|wake| wake.notify_one()),
            None => followers.values().flatten().for_each(|wake| wake.notify_one()),
        }
    }

    pub(super) fn on_class(&self, change: CustomChange<Class>) {
        self.on(change, 0, |world| &mut world.classes);
    }

    pub(super) fn on_claim(&self, change: CustomChange<Claim>) {
        let about = match &change {
            CustomChange::All(_) => None,
            CustomChange::Changed(claim) => Some(claim.name().to_owned()),
            CustomChange::Gone(name, _) => Some(name.clone()),
        };
        self.on(change, 1, |world| &mut world.claims);
        self.wake(about.as_deref());
    }

    pub(super) fn on_target(&self, change: CustomChange<Target>) {
        let about = match &change {
            CustomChange::Changed(target) => {
                target.spec.claim_ref.as_ref().map(|claim| claim.name.to_string())
            }
            CustomChange::All(_) | CustomChange::Gone(..) => None,
        };
        let is_list = matches!(change, CustomChange::All(_));
        self.on(change, 2, |world| &mut world.targets);
        if is_list || about.is_some() {
            self.wake(about.as_deref());
        }
    }

    pub(super) fn on_environment(&self, change: CustomChange<Environment>) {
        self.on(change, 3, |world| &mut world.environments);
    }

    /// Stores a claim that the API server returned.
    pub(super) fn put_claim(&self, claim: Claim) {
        let name = claim.name().to_owned();
        self.change(|world| put(&mut world.claims, claim));
        self.wake(Some(&name));
    }

    /// Stores a target that the API server returned.
    pub(super) fn put_target(&self, target: Target) {
        let claim = target.spec.claim_ref.as_ref().map(|claim| claim.name.to_string());
        self.change(|world| put(&mut world.targets, target));
        if claim.is_some() {
            self.wake(claim.as_deref());
        }
    }

    /// Stores the check of a target.
    pub(super) fn put_check(&self, target: &Target, check: TargetCheck) {
        self.change(|world| drop(world.checks.insert(target.uid().to_owned(), check)));
        if let Some(claim) = &target.spec.claim_ref {
            self.wake(Some(claim.name.as_str()));
        }
    }

    /// Stores an environment that the API server returned.
    pub(super) fn put_environment(&self, environment: Environment) {
        self.change(|world| put(&mut world.environments, environment));
    }

    /// Removes the claim of a spawn that does not exist any more, as the API server has answered.
    pub(super) fn remove_claim_of(&self, name: &str, spawn: &str) {
        self.change(|world| {
            if world.claims.get(name).is_some_and(|claim| belongs_to(&claim.metadata, spawn)) {
                world.claims.remove(name);
            }
        });
        self.wake(Some(name));
    }

    fn on<Spec, Status>(
        &self,
        change: CustomChange<Object<Spec, Status>>,
        kind: usize,
        of: impl FnOnce(&mut World) -> &mut BTreeMap<String, Object<Spec, Status>>,
    ) {
        let mut is_list = false;
        self.change(|world| {
            let known = of(world);
            match change {
                CustomChange::All(all) => {
                    is_list = true;
                    // Answers to requests that were made while the list was read may be newer than the list.
                    let mut before = std::mem::take(known);
                    for object in all {
                        if let Some(newer) = before.remove(object.name()) {
                            put(known, newer);
                        }
                        put(known, object);
                    }
                }
                CustomChange::Changed(object) => put(known, *object),
                CustomChange::Gone(name, uid) => {
                    if known.get(&name).is_some_and(|found| found.uid() == uid) {
                        known.remove(&name);
                    }
                }
            }
        });
        if is_list {
            self.listed.send_modify(|listed| listed[kind] = true);
        }
    }
}

/// Adds the object, unless a newer version of it is known.
fn put<Spec, Status>(known: &mut BTreeMap<String, Object<Spec, Status>>, object: Object<Spec, Status>) {
    let version = |object: &Object<Spec, Status>| {
        let version = object.metadata.resource_version.as_deref();
        version.and_then(|version| version.parse::<u64>().ok()).unwrap_or(u64::MAX)
    };
    let name = object.name().to_owned();
    if known.get(&name).is_some_and(|known| known.uid() == object.uid() && version(known) > version(&object))
    {
        return;
    }
    if object.is_gone() {
        known.remove(&name);
    } else {
        known.insert(name, object);
    }
}
