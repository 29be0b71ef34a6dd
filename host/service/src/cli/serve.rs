//! `wasmspawner serve`

use std::sync::Arc;

use anyhow::Context;
use clap::Args;

use super::ConfigArgs;
use crate::run::{ConfigSource, run, termination};
use wasmspawner_telemetry::{self as telemetry, Metrics, Traces};

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
        let source = self.source();
        let (file, config) = source.load().map_err(anyhow::Error::msg)?;
        let runtime = tokio::runtime::Runtime::new().context("cannot start the threads of the service")?;
        let metrics = Metrics::new();
        let otlp = config.telemetry.otlp.as_ref();
        let traces =
            otlp.map(|otlp| Traces::start(otlp, runtime.handle().clone(), metrics.clone())).transpose()?;
        let _last_lines = telemetry::init(&config.telemetry, traces.as_ref())?;
        let ended = runtime.block_on(async {
            let stop = termination().context("cannot install the signal handlers")?;
            Box::pin(run(source, file, config, metrics, stop)).await
        });
        if let Some(traces) = traces {
            traces.finish();
        }
        ended
    }

    fn source(&self) -> ConfigSource {
        let (source, keep_labs) = (self.config.source(), self.keep_labs);
        let read = source.read;
        let read = move || {
            let mut file = read()?;
            if let Some(embedded) = &mut file.embedded {
                embedded.keep_labs |= keep_labs;
            }
            Ok(file)
        };
        ConfigSource { read: Arc::new(read), ..source }
    }
}
