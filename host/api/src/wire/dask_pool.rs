//! A Dask pool, and the reports of its scheduler.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wasmspawner_core::children::dask::{MAX_GROUPS, MAX_WORKERS};
use wasmspawner_core::manifest;
use wasmspawner_core::names::WorkerGroupName;
use wasmspawner_core::policy::Value;
use wasmspawner_core::record::GroupDescription;

use super::kernel::parse_json;
use super::lab::{Amounts, Quota};
use super::stage::Stage;
use super::status::LabStatus;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use wasmspawner_spawner::{GroupReport, GroupState, PoolSnapshot};

/// A Dask pool: a scheduler and its workers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DaskPool {
    /// The name that its client has given to it.
    name: String,
    /// Whether the scheduler's pod is starting, running, terminating or failed.
    status: LabStatus,
    /// The stage that the scheduler's pod is in.
    stage: Option<Stage>,
    /// The reason for the stage, for programs, in `CamelCase`.
    reason: Option<String>,
    /// The reason for the stage, for people.
    message: Option<String>,
    /// How far the operation is, 0 to 100.
    #[schema(maximum = 100)]
    progress: u8,
    /// The name of the scheduler's pod.
    pod: Option<String>,
    /// The workers, of all groups together.
    workers: Workers,
    /// The groups of workers, in the order in which the client has named them; empty if all workers are alike.
    groups: Vec<WorkerGroup>,
    /// True if the scheduler decides how many workers there are, between minimum and maximum, in one group at least.
    adaptive: bool,
    /// The scheduler's address for Dask clients: `tls://10.2.3.4:8786`; null until it listens.
    scheduler_address: Option<String>,
    /// The URL of the scheduler's dashboard, as the lab reaches it; null until it listens.
    dashboard_url: Option<String>,
    /// Digest of the certificate that its client has made: `sha256:` and 64 hexadecimal digits of the PEM text.
    certificate_digest: String,
    /// After how many seconds without work the pool ends; null if it does not end by itself.
    #[schema(minimum = 1)]
    idle_timeout: Option<u32>,
    /// True if the pool goes on when its lab ends.
    outlives_lab: bool,
    /// The options that it was started with, those of its lab included.
    #[schema(value_type = Object)]
    options: BTreeMap<String, Value>,
    /// The image that it runs.
    image: Option<String>,
    /// Limits and requests of one worker, if all are alike; the workers of a group have limits of their own.
    quotas: Option<Quota>,
    /// The scheduler's limits; null until the policies have decided.
    scheduler_limits: Option<Amounts>,
    /// When the start began, RFC 3339.
    #[schema(format = DateTime)]
    started_at: Option<String>,
}

/// The workers of a pool.
#[derive(Debug, Serialize, ToSchema)]
struct Workers {
    /// How many the pool is to have now, as far as the user's limit allows.
    desired: u32,
    /// How many are connected to the scheduler.
    ready: u32,
    /// How many pods of workers there are.
    pods: u32,
    /// The least number.
    minimum: u32,
    /// The largest number.
    maximum: u32,
    /// Why workers are missing; null if nobody knows or none is missing.
    message: Option<String>,
}

/// A group of workers.
#[derive(Debug, Serialize, ToSchema)]
struct WorkerGroup {
    /// The name of the group. Dask's tasks ask for it as a resource.
    name: String,
    /// How many the group is to have now, as far as the user's limit allows.
    desired: u32,
    /// How many are connected to the scheduler.
    ready: u32,
    /// How many pods of workers there are.
    pods: u32,
    /// The least number.
    minimum: u32,
    /// The largest number.
    maximum: u32,
    /// True if the scheduler decides how many there are.
    adaptive: bool,
    /// The options in which the workers differ from the pool.
    #[schema(value_type = Object)]
    options: BTreeMap<String, Value>,
    /// The limits of one worker; null until the policies have decided.
    limits: Option<Amounts>,
}

/// A pool whose number of workers was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScaledPool {
    #[serde(flatten)]
    pool: DaskPool,
    /// Why the pool does not get what was asked for; null if it does.
    note: Option<String>,
}

/// The report of a pool's scheduler: `ready` and `wanted`, or both for each group of workers.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SchedulerReport {
    /// How many workers are connected to it.
    #[schema(maximum = 10_000)]
    ready: Option<u32>,
    /// How many workers it wants.
    #[schema(maximum = 10_000)]
    wanted: Option<u32>,
    /// The same for each group of workers.
    #[schema(max_items = 8)]
    groups: Option<Vec<ReportedGroup>>,
}

/// The part of the report about a group of workers.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReportedGroup {
    /// The name of the group.
    name: String,
    /// How many workers of the group are connected to it.
    #[schema(maximum = 10_000)]
    ready: u32,
    /// How many workers of the group it wants.
    #[schema(maximum = 10_000)]
    wanted: u32,
}

/// Parses the report of a pool's scheduler.
pub(crate) fn parse_report(body: &[u8]) -> Result<Vec<GroupReport>, Problem> {
    let invalid = |msg: String| Problem::at(&["body"], ProblemKind::InvalidBody, msg);
    let report: SchedulerReport =
        serde_json::from_value(parse_json(body)?).map_err(|error| invalid(error.to_string()))?;
    let reports = match report {
        SchedulerReport { ready: Some(ready), wanted: Some(wanted), groups: None } => {
            vec![GroupReport { group: None, ready, wanted }]
        }
        SchedulerReport { ready: None, wanted: None, groups: Some(groups) } if groups.len() <= MAX_GROUPS => {
            let report = |ReportedGroup { name, ready, wanted }| {
                let group = WorkerGroupName::parse(name).map_err(|error| invalid(error.to_string()))?;
                Ok::<_, Problem>(GroupReport { group: Some(group), ready, wanted })
            };
            groups.into_iter().map(report).collect::<Result<_, Problem>>()?
        }
        _ => {
            return Err(invalid(format!(
                "has `ready` and `wanted`, or at most {MAX_GROUPS} `groups` with both"
            )));
        }
    };
    if reports.iter().any(|report| report.ready.max(report.wanted) > MAX_WORKERS) {
        return Err(invalid(format!("a pool has at most {MAX_WORKERS} workers")));
    }
    Ok(reports)
}

impl From<&PoolSnapshot> for DaskPool {
    fn from(pool: &PoolSnapshot) -> Self {
        let PoolSnapshot { spawn, description, state, .. } = pool;
        let (about, range) = (&spawn.about.description, state.range());
        let scheduler_limits = description.scheduler.or(about.quotas.map(|quotas| quotas.limits));
        Self {
            name: spawn.key.child.as_ref().map(|child| child.name.to_string()).unwrap_or_default(),
            status: spawn.status.into(),
            stage: spawn.stage.map(Stage::from),
            reason: spawn.reason.clone(),
            message: spawn.message.clone(),
            progress: spawn.progress,
            pod: pool.pod.clone(),
            workers: Workers {
                desired: state.target(),
                ready: state.ready().unwrap_or_default(),
                pods: pool.pods.values().copied().fold(0, u32::saturating_add),
                minimum: range.minimum,
                maximum: range.maximum,
                message: pool.waiting.clone().or_else(|| pool.limited.clone()),
            },
            groups: description.groups.iter().filter_map(|group| WorkerGroup::new(pool, group)).collect(),
            adaptive: state.groups.iter().any(|group| group.demand.range.is_adaptive()),
            scheduler_address: pool.address().map(manifest::scheduler_address),
            dashboard_url: pool.address().map(manifest::dashboard_url),
            certificate_digest: description.certificate.clone(),
            idle_timeout: description.idle_timeout,
            outlives_lab: description.outlives_lab,
            options: about.options.clone(),
            image: about.image.as_ref().map(|image| image.reference.clone()),
            quotas: about.quotas.map(Quota::from),
            scheduler_limits: scheduler_limits.map(Amounts::from),
            started_at: spawn.about.started_at.map(|at| at.to_string()),
        }
    }
}

impl WorkerGroup {
    fn new(pool: &PoolSnapshot, described: &GroupDescription) -> Option<Self> {
        let name = Some(described.name.clone());
        let GroupState { demand, ready, .. } = pool.state.groups.iter().find(|group| group.group == name)?;
        Some(Self {
            name: described.name.to_string(),
            desired: demand.target,
            ready: ready.unwrap_or_default(),
            pods: pool.pods.get(&name).copied().unwrap_or_default(),
            minimum: demand.range.minimum,
            maximum: demand.range.maximum,
            adaptive: demand.range.is_adaptive(),
            options: described.options.clone(),
            limits: described.limits.map(Amounts::from),
        })
    }
}

impl ScaledPool {
    pub(crate) fn new(pool: &PoolSnapshot) -> Self {
        Self { pool: pool.into(), note: pool.limited.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_report_is_parsed_without_a_panic(body: Vec<u8>) {
            let _ = parse_report(&body);
        }
    }

    #[test]
    fn a_report_names_two_numbers() {
        let parse = |body: &str| parse_report(body.as_bytes()).is_ok();
        assert!(parse(r#"{"ready": 0, "wanted": 10000}"#));
        assert!(parse(r#"{"groups": [{"name": "gpu", "ready": 0, "wanted": 1}]}"#));
        for body in [
            r#"{"ready": 0}"#,
            r#"{"ready": 0, "wanted": 10001}"#,
            r#"{"ready": -1, "wanted": 1}"#,
            r"{}",
            r#"{"ready": 0, "wanted": 1, "groups": []}"#,
            r#"{"groups": [{"name": "GPU", "ready": 0, "wanted": 1}]}"#,
            r#"{"groups": [{"name": "gpu", "ready": 0, "wanted": 10001}]}"#,
            r#"{"groups": [{"name": "gpu", "ready": 0}]}"#,
        ] {
            assert!(!parse(body), "{body}");
        }
    }
}
