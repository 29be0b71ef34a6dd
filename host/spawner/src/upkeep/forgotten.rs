//! Finds labs that JupyterHub does not know any more, reports them, and stops them where the configuration says so.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::lifecycle::forgotten::{Check, ForgottenLab, KnownLab};

use crate::context::hub_comparison::HubComparison;
use crate::errors::SpawnError;
use crate::labs::Labs;
use crate::labs::message::StopRequest;
use crate::upkeep::leftovers::Leftovers;
use wasmspawner_hub::HubError;

/// The delay of the first check after the start.
const FIRST_CHECK_AFTER: Duration = Duration::from_secs(10);
/// The name that the record of a stop gives as its caller when the lab was forgotten.
const REQUESTED_BY: &str = "forgotten by JupyterHub";

/// The last check, and the time after which forgotten labs are stopped.
#[derive(Debug, Clone)]
pub struct ForgottenReport {
    /// The result of the comparison.
    pub check: Arc<Check>,
    /// The time for which a lab must be found forgotten before it is stopped; `None` if labs are not stopped for that.
    pub stop_after: Option<SignedDuration>,
}

/// The reason why it is not known which labs are forgotten.
#[derive(Debug, thiserror::Error)]
pub enum ForgottenError {
    /// The service has just started and does not know its labs yet.
    #[error(transparent)]
    NotReady(#[from] SpawnError),
    /// The configuration does not say how to ask the Hub.
    #[error(
        "this service does not ask JupyterHub which labs it knows; set hub.api_url and hub.token_file in its configuration"
    )]
    NotConfigured,
    /// The Hub gave no usable answer.
    #[error(transparent)]
    Hub(#[from] HubError),
}

impl Leftovers {
    /// Returns the labs that the Hub does not know now.
    pub async fn forgotten(&self) -> Result<ForgottenReport, ForgottenError> {
        self.0.require_ready()?;
        let comparison = self.0.context().hub.as_ref().ok_or(ForgottenError::NotConfigured)?;
        let check = self.0.compared(comparison).await?;
        Ok(ForgottenReport { check, stop_after: comparison.stop_after() })
    }
}

impl Labs {
    async fn compared(&self, comparison: &HubComparison) -> Result<Arc<Check>, HubError> {
        let context = self.context();
        comparison.check(|| self.active_labs(), &context.metrics, context.now()).await
    }

    /// The labs that the Hub should know. Labs that have failed or are being stopped are left out, because they will be
    /// gone soon.
    fn active_labs(&self) -> Vec<KnownLab> {
        let registry = self.registry();
        let labs = registry.iter().filter(|(key, _)| key.is_lab());
        let running = labs.filter_map(|(key, handle)| {
            let lab = handle.view.borrow().snapshot.clone()?;
            let (job_id, started_at) = (lab.job_id?, lab.about.started_at?);
            matches!(lab.status, LabStatus::Starting | LabStatus::Running).then(|| KnownLab {
                key: key.lab.clone(),
                job_id,
                started_at,
            })
        });
        running.collect()
    }

    /// Stops a forgotten lab, unless a newer one has taken its place.
    async fn stop_forgotten(&self, forgotten: &ForgottenLab) -> Result<(), SpawnError> {
        let counted = SignedDuration::from_secs(forgotten.counted.as_secs());
        let request = StopRequest {
            requested_by: REQUESTED_BY.to_owned(),
            because: Some(format!("JupyterHub has not known this lab for {counted:#}, so it is stopped")),
            only: Some(forgotten.lab.job_id),
        };
        self.ask_stop(&forgotten.lab.key.clone().into(), request).await
    }
}

/// Compares the labs at the configured interval, and stops those that were forgotten for long enough.
pub(crate) async fn follow(labs: &Labs, stop: &CancellationToken) {
    let Some(comparison) = &labs.context().hub else { return };
    let every = comparison.every();
    let mut pause = FIRST_CHECK_AFTER.min(every);
    let mut last_logged = LastLogged::default();
    while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        pause = every;
        let Some(answer) = stop.run_until_cancelled(labs.compared(comparison)).await else { return };
        last_logged.log_if_changed(&answer);
        for forgotten in answer.iter().flat_map(|check| &check.stop) {
            if labs.is_draining() {
                return;
            }
            stop_and_log(labs, forgotten).await;
        }
    }
}

async fn stop_and_log(labs: &Labs, forgotten: &ForgottenLab) {
    let ForgottenLab { lab, since, counted } = forgotten;
    let (user, server) = (&lab.key.user, &lab.key.server);
    match labs.stop_forgotten(forgotten).await {
        Ok(()) => {
            labs.context().metrics.forgotten_stopped();
            tracing::warn!(%user, %server, %since, ?counted, "the lab is stopped because JupyterHub does not know it any more");
        }
        Err(SpawnError::Refused(_)) => {
            tracing::info!(%user, %server, "a forgotten lab has gone by itself, or another has taken its place");
        }
        Err(error) => {
            tracing::warn!(%user, %server, %error, "a forgotten lab cannot be stopped now; it is tried again");
        }
    }
}

/// The message that was logged last, so that it is not repeated at every check.
#[derive(Default)]
struct LastLogged(String);

impl LastLogged {
    fn log_if_changed(&mut self, answer: &Result<Arc<Check>, HubError>) {
        let answer = answer.as_deref();
        let now = match answer {
            Ok(Check { withheld: Some(withheld), .. }) => withheld.to_string(),
            Ok(check) => format!("{} labs are forgotten", check.forgotten.len()),
            Err(error) => error.to_string(),
        };
        if self.0 == now {
            return;
        }
        match answer {
            Ok(Check { withheld: Some(withheld), .. }) => tracing::error!("{withheld}"),
            Ok(check) if check.forgotten.is_empty() => {
                tracing::info!(labs = check.labs, "JupyterHub knows all labs");
            }
            Ok(check) => tracing::warn!(
                labs = check.labs,
                forgotten = check.forgotten.len(),
                "JupyterHub does not know some labs; `wasmspawner labs forgotten` lists them"
            ),
            Err(error) => {
                tracing::warn!(%error, "JupyterHub could not be asked about labs; none is stopped as forgotten");
            }
        }
        self.0 = now;
    }
}
