//! The built-in provisioner: makes targets for claims and for pools.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::Action;
use super::conditions::Problem;
use super::pass::Pass;
use crate::custom_resource::Object;
use crate::custom_resource::environment::{
    CLUSTER, Claim, ClaimRef, Class, DT_PROVISIONER, FINALIZER, IN_POOL, NAMESPACE, NAMESPACE_PROVISIONER,
    OWNER, PROVISIONED_BY, Parameters, Target, TargetPhase, TargetSpec, TargetStatus,
};
use crate::names::{NamespaceName, ObjectName};

/// Largest number of characters of a name that are used in the name of a namespace. With the prefix of a class and a
/// random part, the name of the namespace has at most 63.
const MAX_STEM_LENGTH: usize = 24;

impl<'a> Pass<'a> {
    /// Makes targets for claims, and the objects of targets.
    pub(super) fn provision(&mut self, fresh: &mut dyn FnMut() -> String) {
        for claim in self.world.claims.values() {
            let asked = claim.annotation(DT_PROVISIONER) == Some(NAMESPACE_PROVISIONER);
            if asked
                && !claim.is_deleting()
                && claim.spec.target_name.is_none()
                && self.holders(claim).is_empty()
            {
                self.make_target_for(claim, fresh);
            }
        }
        for target in self.world.targets.values() {
            let failed = target.status.phase == Some(TargetPhase::Failed)
                || self.world.failures.get(target.uid()).is_some_and(|failure| failure.is_final);
            let unfinished = target.is_ours() && target.spec.kubernetes_credentials.is_none();
            if unfinished && !target.is_deleting() && !failed {
                self.done.actions.push(Action::Provision(Box::new(target.clone())));
            }
        }
    }

    fn make_target_for(&mut self, claim: &'a Claim, fresh: &mut dyn FnMut() -> String) {
        let class = claim.spec.deployment_target_class_name.as_ref();
        let Some(class) = class.and_then(|class| self.world.class(class.as_str())) else { return };
        let Ok(parameters) = Parameters::parse(&class.spec.parameters) else { return };
        let name = claim.name_of_made_target();
        let wanted = claim.annotation(NAMESPACE).map(str::to_owned);
        let namespace = wanted.unwrap_or_else(|| namespace_name(&parameters, claim.name(), &fresh()));
        let Some(mut target) = new_target(&name, class, &parameters, &namespace) else { return };
        target.spec.claim_ref = ClaimRef::from_claim(claim);
        if let Some(owner) = claim.annotation(OWNER) {
            target.annotate(OWNER, owner);
        }
        self.done.actions.push(Action::CreateTarget(Box::new(target)));
    }

    /// Keeps as many targets of each class ready as the class requests.
    pub(super) fn keep_pools(&mut self, fresh: &mut dyn FnMut() -> String) {
        for class in self.world.classes.values() {
            if class.spec.provisioner == NAMESPACE_PROVISIONER {
                self.keep_pool(class, fresh);
            }
        }
    }

    fn keep_pool(&mut self, class: &'a Class, fresh: &mut dyn FnMut() -> String) {
        let Ok(parameters) = Parameters::parse(&class.spec.parameters) else { return };
        let world = self.world;
        let is_ready = |target: &&Target| {
            target.spec.deployment_target_class_name.as_ref().is_some_and(|name| *name == *class.name())
                && target.is_ours()
                && target.spec.claim_ref.is_none()
                && !target.is_released()
                && !target.is_deleting()
                && target.status.phase != Some(TargetPhase::Failed)
        };
        let mut ready: Vec<&Target> =
            world.targets.values().filter(is_ready).filter(|target| !self.is_given_away(target)).collect();
        let wanted = usize::try_from(class.spec.pool_size).unwrap_or(usize::MAX);
        ready.sort_by_key(|target| target.created_at());
        // A target that was bound to a claim before may contain data.
        let unused = |target: &&&Target| target.annotation(IN_POOL).is_some();
        for target in ready.iter().skip(wanted).filter(unused) {
            self.done.actions.push(Action::delete(target));
        }
        let numbered = (1_u32..).map(|number| format!("{}-{number}", class.name()));
        let missing = wanted.saturating_sub(ready.len());
        for name in numbered.filter(|name| !world.targets.contains_key(name)).take(missing) {
            let namespace = namespace_name(&parameters, &name, &fresh());
            if let Some(mut target) = new_target(&name, class, &parameters, &namespace) {
                target.annotate(IN_POOL, "true");
                self.done.actions.push(Action::CreateTarget(Box::new(target)));
            }
        }
    }
}

/// Returns the obstacle that prevents the built-in provisioner from making a target for the claim, if there is one.
pub(super) fn provisioning_problem(claim: &Claim, class: &Class) -> Option<Problem> {
    if claim.annotation(DT_PROVISIONER) != Some(NAMESPACE_PROVISIONER) {
        return None;
    }
    let refused = Parameters::parse(&class.spec.parameters).err()?;
    let message = format!("The DeploymentTargetClass {} cannot be used: {refused}", class.name());
    Some(("InvalidClass".to_owned(), message))
}

fn namespace_name(parameters: &Parameters, stem: &str, random: &str) -> String {
    let stem: String =
        stem.chars().map(|letter| if letter == '.' { '-' } else { letter }).take(MAX_STEM_LENGTH).collect();
    format!("{}{}-{random}", parameters.namespace_prefix, stem.trim_end_matches('-'))
}

/// Creates a target whose objects do not exist yet.
fn new_target(name: &str, class: &Class, parameters: &Parameters, namespace: &str) -> Option<Target> {
    NamespaceName::parse(namespace).ok()?;
    let mut target = Object {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: None,
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: TargetSpec {
            deployment_target_class_name: ObjectName::parse(class.name()).ok(),
            reclaim_policy: Some(class.spec.reclaim_policy),
            ..TargetSpec::default()
        },
        status: TargetStatus::default(),
    };
    target.annotate(PROVISIONED_BY, NAMESPACE_PROVISIONER);
    target.annotate(NAMESPACE, namespace);
    if let Some(cluster) = &parameters.credentials_secret {
        target.annotate(CLUSTER, cluster.as_str());
    }
    Some(target)
}
