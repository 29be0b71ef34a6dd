//! The state of a lab as Nublado's controller has it.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lifecycle;
use wasmspawner_core::policy::Options;
use wasmspawner_core::record::ResourceAmount;
use wasmspawner_core::users::identity::Identity;
use wasmspawner_core::users::quota::UserQuota;
use wasmspawner_spawner::LabSnapshot;

/// The size of a lab that is of none of the site's sizes.
const CUSTOM_SIZE: &str = "custom";

/// A lab.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NubladoLabState)]
pub(crate) struct LabState {
    user: UserInfo,
    options: LabOptions,
    status: LabStatus,
    /// The URL at which the Hub reaches the lab; present before the event `complete` is sent.
    internal_url: Option<String>,
    resources: LabResources,
    /// Limits that the identity provider gives the user; only in the user's own answer.
    quota: Option<ResourceQuantity>,
}

/// The user whose lab it is.
#[derive(Debug, Serialize, ToSchema)]
struct UserInfo {
    username: String,
    /// The name for people; only in the user's own answer.
    name: Option<String>,
    #[schema(value_type = u64)]
    uid: u32,
    #[schema(value_type = u64)]
    gid: u32,
    /// The groups that have a gid.
    groups: Vec<UserGroup>,
}

/// A group of a user.
#[derive(Debug, Serialize, ToSchema)]
struct UserGroup {
    name: String,
    #[schema(value_type = u64)]
    id: u32,
}

/// The choices in the form.
#[derive(Debug, Serialize, ToSchema)]
struct LabOptions {
    /// The image with its tag, and with its digest if that is known; empty until the policies have decided.
    image: String,
    size: String,
    enable_debug: bool,
    reset_user_env: bool,
}

/// The state in which a lab is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = NubladoLabStatus)]
#[serde(rename_all = "lowercase")]
enum LabStatus {
    Pending,
    Running,
    Terminating,
    /// The lab's program has ended by itself.
    Terminated,
    /// The lab could not be started, or its pod is gone.
    Failed,
}

/// Limits and requests.
#[derive(Debug, Serialize, ToSchema)]
struct LabResources {
    limits: ResourceQuantity,
    requests: ResourceQuantity,
}

/// Amounts of CPU and memory; 0 where there is no limit.
#[derive(Debug, Serialize, ToSchema)]
struct ResourceQuantity {
    cpu: f64,
    /// Bytes.
    memory: u64,
}

impl LabState {
    /// Describes the lab. `own` is the identity of a caller whose own lab it is.
    pub(super) fn from_snapshot(lab: &LabSnapshot, own: Option<&Identity>) -> Self {
        let described = &lab.about.description;
        let amounts = |amount: Option<&ResourceAmount>| ResourceQuantity {
            cpu: amount.and_then(|amount| amount.cpu).unwrap_or_default(),
            memory: amount.and_then(|amount| amount.memory).unwrap_or_default(),
        };
        let quotas = described.quotas.as_ref();
        let groups = described.groups.iter().filter_map(|group| {
            let id = group.gid?;
            Some(UserGroup { name: group.name.clone(), id })
        });
        Self {
            user: UserInfo {
                username: lab.key.lab.user.to_string(),
                name: own.and_then(|own| own.display_name.clone()),
                uid: described.uid,
                gid: described.gid,
                groups: groups.collect(),
            },
            options: LabOptions {
                image: described
                    .image
                    .as_ref()
                    .map(wasmspawner_core::policy::Image::pinned)
                    .unwrap_or_default(),
                size: text(&described.options, "size").unwrap_or_else(|| CUSTOM_SIZE.to_owned()),
                enable_debug: is_set(&described.options, "enable_debug"),
                reset_user_env: is_set(&described.options, "reset_user_env"),
            },
            status: LabStatus::from_status(lab.status, lab.exit_code),
            internal_url: internal_url(lab),
            resources: LabResources {
                limits: amounts(quotas.map(|quotas| &quotas.limits)),
                requests: amounts(quotas.map(|quotas| &quotas.requests)),
            },
            quota: own.and_then(|own| own.quota).and_then(quota),
        }
    }
}

impl LabStatus {
    fn from_status(status: lifecycle::LabStatus, exit_code: Option<i32>) -> Self {
        match (status, exit_code) {
            (lifecycle::LabStatus::Starting, _) => Self::Pending,
            (lifecycle::LabStatus::Running, _) => Self::Running,
            (lifecycle::LabStatus::Terminating, _) => Self::Terminating,
            (lifecycle::LabStatus::Failed, Some(_)) => Self::Terminated,
            (lifecycle::LabStatus::Failed, None) => Self::Failed,
        }
    }
}

/// Returns the URL of the lab with its path. The URL of this service may be one without.
fn internal_url(lab: &LabSnapshot) -> Option<String> {
    let url = lab.url.as_deref()?;
    let (_, rest) = url.split_once("://")?;
    let prefix = lab.about.env.get("JUPYTERHUB_SERVICE_PREFIX").map_or("/", String::as_str);
    Some(if rest.contains('/') { url.to_owned() } else { format!("{url}{prefix}") })
}

#[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 thousandths of a CPU")]
fn quota(quota: UserQuota) -> Option<ResourceQuantity> {
    let (cpu, memory) = (quota.cpu_millis?, quota.memory_bytes?);
    Some(ResourceQuantity { cpu: cpu as f64 / 1000.0, memory })
}

fn text(options: &Options, name: &str) -> Option<String> {
    options.get(name).map(ToString::to_string)
}

fn is_set(options: &Options, name: &str) -> bool {
    text(options, name).is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_whose_program_has_ended_is_terminated() {
        use lifecycle::LabStatus::{Failed, Running, Starting, Terminating};
        for (status, exit_code, expected) in [
            (Starting, None, LabStatus::Pending),
            (Running, None, LabStatus::Running),
            (Terminating, Some(1), LabStatus::Terminating),
            (Failed, Some(0), LabStatus::Terminated),
            (Failed, None, LabStatus::Failed),
        ] {
            assert_eq!(LabStatus::from_status(status, exit_code), expected);
        }
    }
}
