//! A model of an API server with the four kinds, and of a service that sees its state with a delay.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use wasmspawner_core::custom_resource::Object;
use wasmspawner_core::custom_resource::environment::{
    Action, Claim, ClaimSpec, ClaimStatus, Class, ClassSpec, Environment, EnvironmentStatus,
    KubernetesCredentials, NAMESPACE, NAMESPACE_PROVISIONER, NamespaceState, OWNER, ReclaimPolicy, Target,
    TargetCheck, TargetDefect, TargetPhase, TargetSpec, TargetStatus, Usability, World, reconcile,
};
use wasmspawner_core::names::{NamespaceName, ObjectName};

/// The maximum number of passes until a change leaves nothing to do.
const MOST_PASSES: usize = 60;

/// An API server, and the service that works on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    /// The state of the API server.
    pub(crate) has: World,
    /// Namespaces by name, each with the uid of the target that it was made for.
    pub(crate) namespaces: BTreeMap<String, String>,
    /// Namespaces that are being deleted. A namespace that is stuck stays until it is freed.
    pub(crate) terminating: BTreeMap<String, bool>,
    /// The state that the service has seen.
    pub(crate) seen: World,
    /// The targets in which labs cannot run, by name.
    pub(crate) defects: BTreeMap<String, TargetDefect>,
    pub(crate) now: Timestamp,
    version: u64,
}

fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

pub(crate) fn object_name(name: &str) -> ObjectName {
    ObjectName::parse(name).unwrap()
}

pub(crate) fn claim(name: &str, class: Option<&str>) -> Claim {
    let spec = ClaimSpec { deployment_target_class_name: class.map(object_name), ..ClaimSpec::default() };
    Object { metadata: metadata(name), spec, status: ClaimStatus::default() }
}

/// A claim of the lab of `owner`.
pub(crate) fn owned(name: &str, class: &str, owner: &str) -> Claim {
    let mut claim = claim(name, Some(class));
    claim.annotate(OWNER, owner);
    claim
}

pub(crate) fn class(name: &str, reclaim_policy: ReclaimPolicy, pool_size: u32) -> Class {
    let provisioner = NAMESPACE_PROVISIONER.to_owned();
    let spec = ClassSpec { provisioner, parameters: BTreeMap::new(), reclaim_policy, pool_size };
    Object { metadata: metadata(name), spec, status: () }
}

/// An environment that everybody may name: the target of a claim.
pub(crate) fn environment(name: &str, claim: &str) -> Environment {
    let spec = serde_json::json!({
        "displayName": name,
        "configuration": {"target": {"deploymentTargetClaim": {"claimName": claim}}},
    });
    Object {
        metadata: metadata(name),
        spec: serde_json::from_value(spec).unwrap(),
        status: EnvironmentStatus::default(),
    }
}

/// A target that its owner has brought.
pub(crate) fn target(name: &str, class: Option<&str>) -> Target {
    let spec = TargetSpec {
        deployment_target_class_name: class.map(object_name),
        kubernetes_credentials: Some(KubernetesCredentials {
            default_namespace: NamespaceName::parse(name).unwrap(),
            api_url: None,
            cluster_credentials_secret: None,
            allow_insecure_skip_tls_verify: false,
        }),
        ..TargetSpec::default()
    };
    Object { metadata: metadata(name), spec, status: TargetStatus::default() }
}

impl Cluster {
    fn stamp(&mut self, metadata: &mut ObjectMeta) {
        self.version += 1;
        metadata.uid = Some(format!("{:08x}-0000", self.version));
        metadata.resource_version = Some(self.version.to_string());
        metadata.creation_timestamp = Some(Time(self.now));
    }

    pub(crate) fn add_class(&mut self, mut class: Class) {
        self.stamp(&mut class.metadata);
        self.has.classes.entry(class.name().to_owned()).or_insert(class);
    }

    pub(crate) fn add_claim(&mut self, mut claim: Claim) {
        self.stamp(&mut claim.metadata);
        self.has.claims.entry(claim.name().to_owned()).or_insert(claim);
    }

    pub(crate) fn add_target(&mut self, mut target: Target) {
        self.stamp(&mut target.metadata);
        self.has.targets.entry(target.name().to_owned()).or_insert(target);
    }

    pub(crate) fn add_environment(&mut self, mut environment: Environment) {
        self.stamp(&mut environment.metadata);
        self.has.environments.entry(environment.name().to_owned()).or_insert(environment);
    }

    pub(crate) fn delete_claim(&mut self, name: &str) {
        let now = self.now;
        if let Some(claim) = self.has.claims.get_mut(name) {
            claim.metadata.deletion_timestamp.get_or_insert(Time(now));
        }
        self.touch_claim(name);
    }

    pub(crate) fn delete_target(&mut self, name: &str) {
        let now = self.now;
        if let Some(target) = self.has.targets.get_mut(name) {
            target.metadata.deletion_timestamp.get_or_insert(Time(now));
        }
        self.touch_target(name);
    }

    /// Changes a claim as another client does.
    pub(crate) fn change_claim(&mut self, name: &str, change: impl FnOnce(&mut Claim)) {
        if let Some(claim) = self.has.claims.get_mut(name) {
            change(claim);
        }
        self.touch_claim(name);
    }

    /// Changes a target as another client does.
    pub(crate) fn change_target(&mut self, name: &str, change: impl FnOnce(&mut Target)) {
        if let Some(target) = self.has.targets.get_mut(name) {
            change(target);
        }
        self.touch_target(name);
    }

    /// Gives a claim a new version, and removes it if it is being deleted and has no finalizer.
    fn touch_claim(&mut self, name: &str) {
        self.version += 1;
        let Some(claim) = self.has.claims.get_mut(name) else { return };
        claim.metadata.resource_version = Some(self.version.to_string());
        if claim.is_deleting() && claim.metadata.finalizers.iter().flatten().next().is_none() {
            self.has.claims.remove(name);
        }
    }

    fn touch_target(&mut self, name: &str) {
        self.version += 1;
        let Some(target) = self.has.targets.get_mut(name) else { return };
        target.metadata.resource_version = Some(self.version.to_string());
        if target.is_deleting() && target.metadata.finalizers.iter().flatten().next().is_none() {
            self.has.targets.remove(name);
        }
    }

    /// Deletes a namespace. If it is `stuck`, it stays.
    pub(crate) fn delete_namespace(&mut self, name: &str, stuck: bool) {
        if self.namespaces.contains_key(name) {
            let stays = self.terminating.entry(name.to_owned()).or_default();
            *stays |= stuck;
        }
    }

    /// Frees all namespaces that are stuck.
    pub(crate) fn free_namespaces(&mut self) {
        self.terminating.values_mut().for_each(|stuck| *stuck = false);
    }

    /// Removes namespaces that are being deleted and are not stuck, as the namespace controller does.
    fn finish_namespaces(&mut self) {
        let gone = |(name, stuck): (&String, &bool)| (!stuck).then(|| name.clone());
        for name in self.terminating.iter().filter_map(gone).collect::<Vec<_>>() {
            self.terminating.remove(&name);
            self.namespaces.remove(&name);
        }
    }

    /// Shows the service the present state of everything.
    pub(crate) fn see_all(&mut self) {
        (0..5).for_each(|kind| self.see(kind));
    }

    /// Shows the service the present state of one kind.
    pub(crate) fn see(&mut self, kind: u8) {
        match kind {
            0 => self.seen.classes = self.has.classes.clone(),
            1 => self.seen.claims = self.has.claims.clone(),
            2 => self.seen.targets = self.has.targets.clone(),
            3 => self.seen.environments = self.has.environments.clone(),
            _ => {
                self.finish_namespaces();
                let gone = |(_, state): &(&String, &NamespaceState)| **state == NamespaceState::Gone;
                let mut states: BTreeMap<String, NamespaceState> = self
                    .seen
                    .namespaces
                    .iter()
                    .filter(gone)
                    .map(|(uid, state)| (uid.clone(), state.clone()))
                    .collect();
                for (name, uid) in &self.namespaces {
                    let state = if self.terminating.contains_key(name) {
                        NamespaceState::Terminating(Some("a pod has a finalizer".to_owned()))
                    } else {
                        NamespaceState::Present
                    };
                    states.insert(uid.clone(), state);
                }
                self.seen.namespaces = states;
            }
        }
    }

    /// Returns the actions that the service decides on.
    pub(crate) fn decide(&mut self) -> Vec<Action> {
        let mut numbers = self.version;
        let mut fresh = || {
            numbers += 1;
            format!("r{numbers}")
        };
        let actions = reconcile(&self.seen, self.now, &mut fresh).actions;
        for action in &actions {
            if let Action::WriteTarget(next) = action {
                self.is_given_in_a_usable_state(next);
            }
        }
        actions
    }

    /// Carries out an action as the API server does. A write from an outdated version is refused.
    pub(crate) fn apply(&mut self, action: &Action) {
        match action {
            Action::CreateTarget(target) => {
                if !self.has.targets.contains_key(target.name()) {
                    let mut target = Target::clone(target);
                    // The API server ignores the status in a creation.
                    target.status = TargetStatus::default();
                    self.add_target(target);
                }
            }
            Action::WriteClaim(next) => {
                let known = self.has.claims.get(next.name());
                if known
                    .is_some_and(|known| known.metadata.resource_version == next.metadata.resource_version)
                {
                    self.has.claims.insert(next.name().to_owned(), Claim::clone(next));
                    self.touch_claim(next.name());
                }
            }
            Action::WriteTarget(next) => {
                let known = self.has.targets.get(next.name());
                if known
                    .is_some_and(|known| known.metadata.resource_version == next.metadata.resource_version)
                {
                    self.has.targets.insert(next.name().to_owned(), Target::clone(next));
                    self.touch_target(next.name());
                }
            }
            Action::WriteEnvironment(next) => {
                self.has.environments.insert(next.name().to_owned(), Environment::clone(next));
            }
            Action::DeleteTarget { name, uid } => {
                if self.has.targets.get(name).is_some_and(|target| target.uid() == uid) {
                    self.delete_target(name);
                }
            }
            Action::IfClaimIsGone { claim, uid, then } => {
                let found = self.has.claims.get(claim.as_str());
                if found.is_none_or(|found| found.uid() != uid) {
                    self.apply(then);
                }
            }
            Action::Check(target) => {
                let check = TargetCheck {
                    credentials: target.spec.kubernetes_credentials.clone().unwrap(),
                    at: self.now,
                    defect: self.defects.get(target.name()).cloned(),
                };
                self.seen.checks.insert(target.uid().to_owned(), check);
            }
            Action::Provision(target) => self.provision(target),
            Action::Deprovision(target) => self.deprovision(target),
        }
    }

    /// Checks that the service gives a target to a claim only after it has seen that labs can run there.
    fn is_given_in_a_usable_state(&self, next: &Target) {
        let before = self.seen.targets.get(next.name());
        let is_given = next.status.phase == Some(TargetPhase::Bound)
            && before.is_none_or(|before| before.spec.claim_ref != next.spec.claim_ref);
        assert!(!is_given || self.seen.usability(next) == Usability::Usable, "{}", next.name());
    }

    fn provision(&mut self, target: &Target) {
        let found = self.has.targets.get(target.name());
        if !found.is_some_and(|found| found.uid() == target.uid() && !found.is_deleting()) {
            return;
        }
        let namespace = target.annotation(NAMESPACE).unwrap().to_owned();
        let of = self.namespaces.entry(namespace).or_insert_with(|| target.uid().to_owned());
        if of == target.uid() {
            let next = target.provisioned(None, None).unwrap();
            self.apply(&Action::WriteTarget(Box::new(next)));
        }
    }

    fn deprovision(&mut self, target: &Target) {
        let namespace = target.annotation(NAMESPACE).unwrap_or_default().to_owned();
        if self.namespaces.get(&namespace).is_some_and(|uid| uid == target.uid()) {
            self.delete_namespace(&namespace, false);
        } else {
            self.seen.namespaces.insert(target.uid().to_owned(), NamespaceState::Gone);
        }
    }

    /// Lets the service work until nothing is left to do.
    pub(crate) fn settle(&mut self) {
        for _ in 0..MOST_PASSES {
            self.see_all();
            let actions = self.decide();
            let waits = self.terminating.values().any(|stuck| !stuck);
            if actions.is_empty() && !waits {
                return;
            }
            let before = self.clone();
            for action in &actions {
                self.apply(action);
            }
            self.see_all();
            if self.has == before.has && self.seen == before.seen && !waits {
                return;
            }
        }
        panic!("the service does not come to rest: {:#?}", self.decide());
    }

    pub(crate) fn later(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }
}
