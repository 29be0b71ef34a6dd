//! `wasmspawner policy`: the commands for authors of policies. Only `list` and `dev --reload` need a running service.

mod bench;
mod build;
mod case;
mod case_files;
mod dev;
mod diff;
mod hooks;
mod inspect;
mod known_images;
mod list;
mod loaded;
mod manifest;
mod new;
mod pinned;
mod project;
mod pull;
mod push;
mod registry_args;
mod run;
mod sources;
mod test;
mod validate;

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  wasmspawner policy new my-policy                      a policy that builds, and its tests
  wasmspawner policy new my-policy --language python
  wasmspawner policy build my-policy                    my-policy/my-policy.wasm
  wasmspawner policy test my-policy/my-policy.wasm my-policy/cases
  wasmspawner policy inspect my-policy/my-policy.wasm
  wasmspawner policy validate my-policy/my-policy.wasm --config my-policy/config.yaml
  wasmspawner policy run my-policy/my-policy.wasm quota.limits --config my-policy/config.yaml --user eve --group guests
  wasmspawner policy diff site-1.wasm site-2.wasm cases --config site.yaml
  wasmspawner policy bench my-policy/my-policy.wasm --config my-policy/config.yaml
  wasmspawner policy dev my-policy                      builds and tests it whenever a file changes
  wasmspawner policy push my-policy ghcr.io/site/my-policy:1.0
  wasmspawner policy pull ghcr.io/site/my-policy:1.0
  wasmspawner policy list                               the policies of a running service";

/// Makes, tries, tests, measures and publishes policies, and shows those of a running service.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Make a folder with a policy, its configuration and its tests
    New(new::NewArgs),
    /// Build the policy in a folder
    Build(build::BuildArgs),
    /// Show what a policy is: its hooks, what it imports, its version, size and digest
    Inspect(inspect::InspectArgs),
    /// Check a configuration as the service does when it loads the policy
    Validate(validate::ValidateArgs),
    /// Call a hook and print its answer as JSON
    Run(run::RunArgs),
    /// Compare the answers of a policy with those that its cases expect
    Test(test::TestArgs),
    /// Show where a policy and what may replace it answer differently
    Diff(diff::DiffArgs),
    /// Measure how long each hook takes
    Bench(bench::BenchArgs),
    /// Build and test the policy in a folder whenever one of its files changes
    Dev(dev::DevArgs),
    /// Store a policy in a container registry
    Push(push::PushArgs),
    /// Get a policy from a container registry
    Pull(pull::PullArgs),
    /// List the policies of a running service
    List(list::ListArgs),
}

impl PolicyArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self.command {
                PolicyCommand::New(args) => args.run(out),
                PolicyCommand::Build(args) => args.run(out),
                PolicyCommand::Inspect(args) => args.run(out).await,
                PolicyCommand::Validate(args) => args.run(out).await,
                PolicyCommand::Run(args) => args.run(out).await,
                PolicyCommand::Test(args) => args.run(out).await,
                PolicyCommand::Diff(args) => args.run(out).await,
                PolicyCommand::Bench(args) => args.run(out).await,
                PolicyCommand::Dev(args) => args.run(out).await,
                PolicyCommand::Push(args) => args.run(out).await,
                PolicyCommand::Pull(args) => args.run(out).await,
                PolicyCommand::List(args) => args.run(out).await,
            }
        })
    }
}
