//! `wasmspawner compile-policy`, which only the service itself runs

use clap::Args;

use wasmspawner_policies::compile_standard_input;

/// Compiles the component on standard input within limits, and writes machine code to standard output.
#[derive(Debug, Args)]
pub(super) struct CompilePolicyArgs {
    /// The most memory, in bytes
    memory_bytes: u64,
    /// The most CPU time, in seconds
    cpu_seconds: u64,
}

impl CompilePolicyArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        compile_standard_input(self.memory_bytes, self.cpu_seconds)
    }
}
