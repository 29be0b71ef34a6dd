//! `wasmspawner serve`

use anyhow::Context;
use clap::Args;

use super::ConfigArgs;
use crate::run::{run, termination};
use crate::telemetry::{self, Metrics, Traces};

/// Runs the service until SIGINT or SIGTERM.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Leave labs of the one-machine cluster running when the service ends; the next start adopts them
    #[arg(long, requires = "local")]
    keep_labs: bool,
}

impl ServeArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut config = self.config.load()?;
        if let Some(embedded) = &mut config.embedded {
            embedded.keep_labs |= self.keep_labs;
        }
        let runtime = tokio::runtime::Runtime::new().context("cannot start the threads of the service")?;
        let metrics = Metrics::new();
        let otlp = config.telemetry.otlp.as_ref();
        let traces =
            otlp.map(|otlp| Traces::start(otlp, runtime.handle().clone(), metrics.clone())).transpose()?;
        let _last_lines = telemetry::init(&config.telemetry, traces.as_ref())?;
        let ended = runtime.block_on(async {
            let stop = termination().context("cannot install the signal handlers")?;
            run(config, metrics, stop).await
        });
        if let Some(traces) = traces {
            traces.finish();
        }
        ended
    }
}
