//! A Dask pool, and the reports of its scheduler.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wasmspawner_core::children::dask::MAX_WORKERS;
use wasmspawner_core::manifest;
use wasmspawner_core::policy::Value;

use super::kernel::parse_json;
use super::lab::Quota;
use super::stage::Stage;
use super::status::LabStatus;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use wasmspawner_spawner::{PoolSnapshot, PoolState};

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
    /// The workers.
    workers: Workers,
    /// True if the scheduler decides how many workers there are, between minimum and maximum.
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
    /// What one worker may use of CPU and memory, and the scheduler likewise.
    quotas: Option<Quota>,
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

/// A pool whose number of workers was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScaledPool {
    #[serde(flatten)]
    pool: DaskPool,
    /// Why the pool does not get what was asked for; null if it does.
    note: Option<String>,
}

/// What a pool's scheduler says.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulerReport {
    /// How many workers are connected to it.
    #[schema(maximum = 10_000)]
    pub(crate) ready: u32,
    /// How many workers it wants.
    #[schema(maximum = 10_000)]
    pub(crate) wanted: u32,
}

/// Parses the report of a pool's scheduler.
pub(crate) fn parse_report(body: &[u8]) -> Result<SchedulerReport, Problem> {
    let invalid = |msg: String| Problem::at(&["body"], ProblemKind::InvalidBody, msg);
    let report: SchedulerReport =
        serde_json::from_value(parse_json(body)?).map_err(|error| invalid(error.to_string()))?;
    if report.ready > MAX_WORKERS || report.wanted > MAX_WORKERS {
        return Err(invalid(format!("a pool has at most {MAX_WORKERS} workers")));
    }
    Ok(report)
}

impl From<&PoolSnapshot> for DaskPool {
    fn from(pool: &PoolSnapshot) -> Self {
        let PoolSnapshot { spawn, description, state: PoolState { demand, ready, .. }, .. } = pool;
        let about = &spawn.about.description;
        Self {
            name: spawn.key.child.as_ref().map(|child| child.name.to_string()).unwrap_or_default(),
            status: spawn.status.into(),
            stage: spawn.stage.map(Stage::from),
            reason: spawn.reason.clone(),
            message: spawn.message.clone(),
            progress: spawn.progress,
            pod: pool.pod.clone(),
            workers: Workers {
                desired: demand.target,
                ready: ready.unwrap_or_default(),
                pods: pool.pods,
                minimum: demand.range.minimum,
                maximum: demand.range.maximum,
                message: pool.waiting.clone().or_else(|| pool.limited.clone()),
            },
            adaptive: demand.range.is_adaptive(),
            scheduler_address: pool.address().map(manifest::scheduler_address),
            dashboard_url: pool.address().map(manifest::dashboard_url),
            certificate_digest: description.certificate.clone(),
            idle_timeout: description.idle_timeout,
            outlives_lab: description.outlives_lab,
            options: about.options.clone(),
            image: about.image.as_ref().map(|image| image.reference.clone()),
            quotas: about.quotas.map(Quota::from),
            started_at: spawn.about.started_at.map(|at| at.to_string()),
        }
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
        for body in [r#"{"ready": 0}"#, r#"{"ready": 0, "wanted": 10001}"#, r#"{"ready": -1, "wanted": 1}"#] {
            assert!(!parse(body), "{body}");
        }
    }
}
