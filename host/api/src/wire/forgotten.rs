//! The answer about labs that JupyterHub no longer knows.

use jiff::SignedDuration;
use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lifecycle::forgotten;

use wasmspawner_spawner::ForgottenReport;

/// The result of comparing the labs with the servers that the Hub knows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ForgottenLabs {
    /// How many labs are starting or running.
    labs: usize,
    /// The labs that the Hub does not know, sorted.
    forgotten: Vec<ForgottenLab>,
    /// After how many seconds such a lab is stopped; null when such labs are not stopped.
    stop_after_seconds: Option<i64>,
    /// Why no lab is stopped although some look forgotten; null when nothing prevents it.
    withheld: Option<String>,
}

/// A lab that the Hub does not know.
#[derive(Debug, Serialize, ToSchema)]
struct ForgottenLab {
    /// The user whose lab it is.
    username: String,
    /// The name of the user's server; empty for the default server.
    server: String,
    /// When its spawn began, RFC 3339.
    started_at: String,
    /// Since when the service has found it forgotten, RFC 3339. After a restart of the service this begins anew.
    forgotten_since: String,
    /// For how many seconds it has been found forgotten. Time in which the Hub could not be asked does not count.
    forgotten_seconds: i64,
    /// After how many more seconds it is stopped, at the earliest; null when it is not stopped.
    stops_in_seconds: Option<i64>,
}

impl From<&ForgottenReport> for ForgottenLabs {
    fn from(report: &ForgottenReport) -> Self {
        let ForgottenReport { check, stop_after } = report;
        let stops_after = stop_after.filter(|_| check.withheld.is_none());
        Self {
            labs: check.labs,
            forgotten: check.forgotten.iter().map(|lab| ForgottenLab::new(lab, stops_after)).collect(),
            stop_after_seconds: stop_after.map(|after| after.as_secs()),
            withheld: check.withheld.map(|withheld| withheld.to_string()),
        }
    }
}

impl ForgottenLab {
    fn new(forgotten: &forgotten::ForgottenLab, stops_after: Option<SignedDuration>) -> Self {
        let forgotten::ForgottenLab { lab, since, counted } = forgotten;
        Self {
            username: lab.key.user.to_string(),
            server: lab.key.server.to_string(),
            started_at: lab.started_at.to_string(),
            forgotten_since: since.to_string(),
            forgotten_seconds: counted.as_secs(),
            stops_in_seconds: stops_after.map(|after| (after.as_secs() - counted.as_secs()).max(0)),
        }
    }
}
