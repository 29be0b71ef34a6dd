//! The answer about one lab.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::policy::compose::FieldsBySource;
use wasmspawner_core::policy::{self, Value};
use wasmspawner_core::record::{LabDescription, PolicyRef, Quotas, ResourceAmount};
use wasmspawner_core::users::access::Permit;
use wasmspawner_core::users::identity;

use super::stage::Stage;
use super::status::{LabStatus, PodPresence};
use wasmspawner_spawner::{LabDetails, LabSnapshot};

/// A lab.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Lab {
    /// The user whose lab it is.
    #[schema(example = "rra")]
    username: String,
    /// The name of the user's server; empty for the default server.
    server: String,
    /// Whether the lab is starting, running, terminating or failed.
    status: LabStatus,
    /// Whether the pod exists.
    pod: PodPresence,
    /// The choices in the spawn form.
    #[schema(value_type = Object)]
    options: BTreeMap<String, Value>,
    /// The lab's environment variables; credentials are `<redacted>`.
    env: BTreeMap<String, String>,
    /// The uid that the lab's processes run as.
    #[schema(value_type = u64)]
    uid: u32,
    /// The gid of the user's primary group.
    #[schema(value_type = u64)]
    gid: u32,
    /// The user's groups.
    groups: Vec<Group>,
    /// What the lab may use of CPU and memory; null when there is no limit.
    quotas: Option<Quota>,
    /// The URL at which the Hub reaches the lab; present before the `complete` event is sent.
    url: Option<String>,
    /// The stage that the pod is in.
    stage: Option<Stage>,
    /// The reason for the stage, for programs, in `CamelCase`.
    reason: Option<String>,
    /// The reason for the stage, for people.
    message: Option<String>,
    /// How far the operation is, 0 to 100.
    #[schema(maximum = 100)]
    progress: u8,
    /// The id of the operation under way, or of the last one.
    #[schema(format = "uuid")]
    job_id: Option<String>,
    /// The image that the lab runs.
    image: Option<Image>,
    /// When the spawn began, RFC 3339.
    #[schema(format = DateTime)]
    started_at: Option<String>,
    /// How often a container was restarted since the lab became ready.
    restarts: u32,
    /// The exit code of the lab's program, if the lab failed because that ended; null otherwise.
    exit_code: Option<i32>,
    /// The parts of the security baseline that are lifted, because the lab is an administrator's: `root`, `privileged`, and
    /// paths of the node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lifted: Vec<String>,
    /// The policies that decided about the lab, in the order in which they were asked.
    policy: Vec<DecidedBy>,
    /// The lab's fields by who decided them, such as a policy, or a policy by one of its grants; only for administrators.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    decided_by: BTreeMap<String, Vec<String>>,
}

/// A group of a user.
#[derive(Debug, Serialize, ToSchema)]
struct Group {
    name: String,
    /// The group's gid; absent when it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    id: Option<u32>,
}

/// The limits of a lab, and the resources that are requested for it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Quota {
    limits: Amounts,
    requests: Amounts,
}

/// Amounts of CPU and memory.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Amounts {
    /// CPUs; null when not set.
    cpu: Option<f64>,
    /// Memory in bytes; null when not set.
    memory: Option<u64>,
}

/// A container image.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Image {
    reference: String,
    digest: Option<String>,
    description: Option<String>,
}

/// A policy that decided about the lab, in the version that decided.
#[derive(Debug, Serialize, ToSchema)]
struct DecidedBy {
    name: String,
    digest: String,
}

impl Lab {
    /// Describes the lab with the details that this caller may see.
    pub(crate) fn from_snapshot(lab: &LabSnapshot, permit: Permit) -> Self {
        let key = lab.key.clone();
        let LabDetails { description, env, started_at } = LabDetails::clone(&lab.about);
        let LabDescription { options, uid, gid, groups, quotas, image, policies, decided_by, lifted, .. } =
            LabDescription::clone(&description);
        Self {
            username: key.lab.user.into(),
            server: key.lab.server.into(),
            status: lab.status.into(),
            pod: lab.pod.into(),
            options,
            env,
            uid,
            gid,
            groups: groups.into_iter().map(Group::from).collect(),
            quotas: quotas.map(Quota::from),
            url: lab.url.clone(),
            stage: lab.stage.map(Stage::from),
            reason: lab.reason.clone(),
            message: lab.message.clone(),
            progress: lab.progress,
            job_id: lab.job_id.map(|id| id.to_string()),
            image: image.map(Image::from),
            started_at: started_at.map(|at| at.to_string()),
            restarts: lab.restarts,
            exit_code: lab.exit_code,
            lifted,
            policy: policies.into_iter().map(DecidedBy::from).collect(),
            decided_by: for_administrators(decided_by, permit),
        }
    }
}

/// Returns the fields by who decided them if the caller is an administrator; otherwise none.
pub(super) fn for_administrators(decided_by: FieldsBySource, permit: Permit) -> FieldsBySource {
    if permit == Permit::Administrator { decided_by } else { FieldsBySource::new() }
}

impl From<identity::Group> for Group {
    fn from(group: identity::Group) -> Self {
        Self { name: group.name, id: group.gid }
    }
}

impl From<Quotas> for Quota {
    fn from(quotas: Quotas) -> Self {
        Self { limits: quotas.limits.into(), requests: quotas.requests.into() }
    }
}

impl From<ResourceAmount> for Amounts {
    fn from(share: ResourceAmount) -> Self {
        Self { cpu: share.cpu, memory: share.memory }
    }
}

impl From<policy::Image> for Image {
    fn from(image: policy::Image) -> Self {
        Self { reference: image.reference, digest: image.digest, description: image.description }
    }
}

impl From<PolicyRef> for DecidedBy {
    fn from(policy: PolicyRef) -> Self {
        Self { name: policy.name, digest: policy.digest }
    }
}
