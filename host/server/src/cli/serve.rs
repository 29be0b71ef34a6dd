//! `wasmspawner serve`

use std::sync::Arc;

use anyhow::Context;
use clap::Args;

use super::ConfigArgs;
use crate::http::ConfigSource;
use crate::run::{run, termination};

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
        let _last_lines = crate::telemetry::init(&config.telemetry)?;
        let runtime = tokio::runtime::Runtime::new().context("cannot start the threads of the service")?;
        runtime.block_on(async {
            let stop = termination().context("cannot install the signal handlers")?;
            run(source, file, config, stop).await
        })
    }

    fn source(&self) -> ConfigSource {
        let (args, keep_labs) = (self.config.clone(), self.keep_labs);
        let read = move || {
            let mut file = args.file().map_err(|error| format!("{error:#}"))?;
            if let Some(embedded) = &mut file.embedded {
                embedded.keep_labs |= keep_labs;
            }
            Ok(file)
        };
        ConfigSource { path: self.config.config.clone(), read: Arc::new(read) }
    }
}
