//! `wasmspawner schema`

use std::io::Write;

use clap::Args;
use wasmspawner_core::config::ConfigFile;

const EXAMPLES: &str = "\
Example:
  wasmspawner schema > wasmspawner.schema.json

With that file beside the configuration, editors complete and check it after this first line:
  # yaml-language-server: $schema=wasmspawner.schema.json";

/// Prints the JSON Schema of the configuration file, with a description of every key.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SchemaArgs {}

impl SchemaArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let Self {} = self;
        serde_json::to_writer_pretty(&mut *out, &schemars::schema_for!(ConfigFile))?;
        writeln!(out)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_describes_every_section_and_allows_no_other() {
        let mut out = Vec::new();
        SchemaArgs {}.run(&mut out).unwrap();
        let schema: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        for section in ["http", "auth", "kubernetes", "embedded", "names", "lab", "policies", "limits"] {
            assert!(schema["properties"][section]["description"].is_string(), "{section}: {schema}");
        }
    }
}
