//! Labs that JupyterHub does not know any more: they are told, and where the site wants it stopped.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::forgotten::{Check, ForgottenLab, KnownLab};
use wasmspawner_core::lifecycle::LabStatus;

use super::errors::SpawnError;
use super::hub_comparison::HubComparison;
use super::labs::Labs;
use super::message::StopRequest;
use crate::hub::HubError;

/// The first check after the start.
const FIRST: Duration = Duration::from_secs(10);
/// Who is written down as having asked for the stop of a forgotten lab.
const REQUESTED_BY: &str = "forgotten by JupyterHub";

/// The last check, and what follows from it.
#[derive(Debug, Clone)]
pub struct ForgottenReport {
    /// The check.
    pub check: Arc<Check>,
    /// A lab that was forgotten for so long is stopped; nothing: none is.
    pub stop_after: Option<SignedDuration>,
}

/// Why nobody knows which labs are forgotten.
#[derive(Debug, thiserror::Error)]
pub enum ForgottenError {
    /// The service does not know its own labs yet.
    #[error(transparent)]
    NotReady(#[from] SpawnError),
    /// It has no token for the Hub.
    #[error(
        "this service does not ask JupyterHub which labs it knows; set hub.api_url and hub.token_file in its configuration"
    )]
    NotConfigured,
    /// The Hub gave no answer that can be used.
    #[error(transparent)]
    Hub(#[from] HubError),
}

impl Labs {
    /// Which labs the Hub does not know, as of now.
    pub async fn forgotten(&self) -> Result<ForgottenReport, ForgottenError> {
        self.known()?;
        let comparison = self.context().hub.as_ref().ok_or(ForgottenError::NotConfigured)?;
        let check = self.compared(comparison).await?;
        Ok(ForgottenReport { check, stop_after: comparison.stop_after() })
    }

    async fn compared(&self, comparison: &HubComparison) -> Result<Arc<Check>, HubError> {
        let context = self.context();
        comparison.check(|| self.that_run(), &context.metrics, context.now()).await
    }

    /// The labs that the Hub should know. What has failed or is being stopped goes by itself.
    fn that_run(&self) -> Vec<KnownLab> {
        let registry = self.registry();
        let running = registry.iter().filter_map(|(key, handle)| {
            let lab = handle.view.borrow().snapshot.clone()?;
            let (job_id, started_at) = (lab.job_id?, lab.about.started_at?);
            matches!(lab.status, LabStatus::Starting | LabStatus::Running).then(|| KnownLab {
                key: key.clone(),
                job_id,
                started_at,
            })
        });
        running.collect()
    }

    /// Stops a forgotten lab, unless another one has taken its place.
    async fn stop_forgotten(&self, forgotten: &ForgottenLab) -> Result<(), SpawnError> {
        let counted = SignedDuration::from_secs(forgotten.counted.as_secs());
        let request = StopRequest {
            requested_by: REQUESTED_BY.to_owned(),
            because: Some(format!("JupyterHub has not known this lab for {counted:#}, so it is stopped")),
            only: Some(forgotten.lab.job_id),
        };
        self.ask_stop(&forgotten.lab.key, request).await
    }
}

/// Compares now and then, and stops what was forgotten for long enough.
pub(super) async fn follow(labs: &Labs, stop: &CancellationToken) {
    let Some(comparison) = &labs.context().hub else { return };
    let every = comparison.every();
    let mut pause = FIRST.min(every);
    let mut told = Told::default();
    while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        pause = every;
        let Some(answer) = stop.run_until_cancelled(labs.compared(comparison)).await else { return };
        told.tell(&answer);
        for forgotten in answer.iter().flat_map(|check| &check.stop) {
            if labs.is_draining() {
                return;
            }
            stop_and_tell(labs, forgotten).await;
        }
    }
}

async fn stop_and_tell(labs: &Labs, forgotten: &ForgottenLab) {
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

/// What was logged last: the same is not said again at every check.
#[derive(Default)]
struct Told(String);

impl Told {
    fn tell(&mut self, answer: &Result<Arc<Check>, HubError>) {
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
                tracing::warn!(%error, "nobody knows whether JupyterHub has forgotten labs; none is stopped for that");
            }
        }
        self.0 = now;
    }
}
