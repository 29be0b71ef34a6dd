//! Gets an environment for a lab: makes the lab's claim, and waits until the claim has a target.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::EnvironmentChoice;
use wasmspawner_core::custom_resource::environment::{Binding, ClaimState, NamespaceFate};
use wasmspawner_core::lifecycle::Failure;
use wasmspawner_core::names::ObjectName;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::record::{Place, PlaceClaim, PlaceKind};

use super::requests::TaskResult;
use crate::context::Context;
use crate::errors::{SpawnError, failure};
use wasmspawner_kubernetes::environments::{Environments, LabClaim};

/// The pause between two attempts to make a claim while another claim has its name.
const PAUSE: Duration = Duration::from_millis(500);

/// A lab that has to get an environment.
pub(crate) struct ToBind {
    pub(crate) lab: LabKey,
    /// The place of the lab so far. Its namespace is the one that a new target is to have.
    pub(crate) place: Place,
    /// The uid of the lab's record.
    pub(crate) spawn: String,
    pub(crate) choice: EnvironmentChoice,
}

/// Describes the environment that a lab waits for, in words.
pub(crate) fn waiting_for(choice: &EnvironmentChoice) -> String {
    match choice {
        EnvironmentChoice::Class(class) => format!("Waiting for an environment of the class {class}."),
        EnvironmentChoice::Named(name) => format!("Waiting for the environment {name}."),
    }
}

/// Gets the environment within the time `within`.
pub(crate) async fn bind(
    context: Arc<Context>,
    to_bind: ToBind,
    within: Duration,
    cancel: CancellationToken,
) -> TaskResult {
    let Some(environments) = &context.environments else {
        let message = "The service has no environments; its configuration has changed".to_owned();
        return TaskResult::Bound(Err(Failure::service("NoEnvironments", message)));
    };
    let getting = tokio::time::timeout(within, get(environments, &to_bind));
    let bound = match cancel.run_until_cancelled(getting).await {
        Some(Ok(bound)) => bound,
        Some(Err(_)) => Err(too_late(environments, &to_bind)),
        None => Err(Failure::service("Cancelled", "The lab was stopped before it had an environment")),
    };
    let allowed = bound.and_then(|place| {
        let namespaces = &context.config.current().lab_namespaces;
        if place.kind.cluster().is_none() {
            namespaces.check(&place.namespace).map_err(|error| SpawnError::from(error).into_failure())?;
        }
        Ok(Box::new(place))
    });
    TaskResult::Bound(allowed)
}

async fn get(environments: &Environments, to_bind: &ToBind) -> Result<Place, Failure> {
    let (claim, own) = match &to_bind.choice {
        EnvironmentChoice::Class(class) => {
            let name = own_claim(to_bind)?;
            make_claim(environments, to_bind, class, &name).await?;
            (name, true)
        }
        EnvironmentChoice::Named(name) => {
            let claim = environments
                .claim_of_environment(name)
                .ok_or_else(|| wrong("EnvironmentNotFound", format!("There is no environment {name}")))?;
            (claim, false)
        }
    };
    let follower = environments.follow_claim(&claim);
    loop {
        match environments.claim_state(&claim) {
            ClaimState::Bound(binding) => return Ok(place_at(to_bind, binding, claim, own)),
            ClaimState::Failed(reason, message) => {
                let text = format!("There is no environment for your lab: {message}");
                return Err(Failure::service(reason, text));
            }
            ClaimState::Absent if own => {
                let message = "The claim of your lab was deleted before it had an environment".to_owned();
                return Err(wrong("ClaimDeleted", message));
            }
            ClaimState::Absent | ClaimState::Waiting(_) => follower.changed().await,
        }
    }
}

/// Returns the name of the lab's own claim, which is already in the lab's record.
fn own_claim(to_bind: &ToBind) -> Result<ObjectName, Failure> {
    let own = to_bind.place.kind.own_claim();
    own.map(|claim| claim.name.clone())
        .ok_or_else(|| Failure::service("InternalError", "The record of the lab names no claim"))
}

/// Makes the claim, once no other claim has its name.
async fn make_claim(
    environments: &Environments,
    to_bind: &ToBind,
    class: &ObjectName,
    name: &ObjectName,
) -> Result<(), Failure> {
    let wanted = LabClaim {
        name,
        class,
        owner: &to_bind.lab,
        namespace: &to_bind.place.namespace,
        spawn: &to_bind.spawn,
    };
    while !environments.claim(&wanted).await.map_err(|error| failure(&error))? {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

fn place_at(to_bind: &ToBind, binding: Binding, claim: ObjectName, own: bool) -> Place {
    let Binding { namespace, cluster, fate } = binding;
    // An environment that everybody may name is shared with others.
    let fate = if own { fate } else { NamespaceFate::Shared };
    Place {
        namespace,
        pod: to_bind.place.pod.clone(),
        entrance: to_bind.place.entrance.in_cluster(cluster.as_ref()),
        kind: PlaceKind::Claimed { claim: PlaceClaim { name: claim, own, fate }, cluster },
    }
}

fn too_late(environments: &Environments, to_bind: &ToBind) -> Failure {
    let (what, claim) = match &to_bind.choice {
        EnvironmentChoice::Class(class) => (format!("of the class {class}"), own_claim(to_bind).ok()),
        EnvironmentChoice::Named(name) => (name.to_string(), environments.claim_of_environment(name)),
    };
    let why = match claim.map(|claim| environments.claim_state(&claim)) {
        Some(ClaimState::Waiting(Some(why))) => format!(": {why}"),
        _ => String::new(),
    };
    wrong("EnvironmentTimeout", format!("The environment {what} was not ready in time{why}"))
}

fn wrong(reason: &str, message: String) -> Failure {
    Failure::service(reason, message)
}
