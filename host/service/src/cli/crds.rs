//! `wasmspawner crds`

use std::io::Write;

use clap::Args;
use wasmspawner_core::record::definitions::definitions;

const EXAMPLES: &str = "\
Example:
  wasmspawner crds | kubectl apply -f -";

/// Prints the custom resource definitions that the service needs in a cluster.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CrdsArgs {}

impl CrdsArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let Self {} = self;
        writeln!(
            out,
            "# Printed by `wasmspawner crds`: change the types in host/core/src/record and custom_resource instead."
        )?;
        let all: Result<Vec<String>, _> = definitions().iter().map(serde_saphyr::to_string).collect();
        write!(out, "{}", all?.join("---\n"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_in_deploy_is_what_the_command_prints() {
        let mut printed = Vec::new();
        CrdsArgs {}.run(&mut printed).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds.yaml");
        let written = std::fs::read_to_string(file).unwrap_or_default();
        assert_eq!(written, printed, "write it anew: cargo run --bin wasmspawner -- crds > deploy/crds.yaml");
        let read: Vec<serde_json::Value> = serde_saphyr::from_multiple(&printed).unwrap();
        assert_eq!(read, definitions());
    }
}
