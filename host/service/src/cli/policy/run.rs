//! `wasmspawner policy run`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use wasmspawner_core::images::{Needs, PullHistory};
use wasmspawner_core::policy::form::FormContext;

use super::case::Case;
use super::hooks::{HookName, is_error, outcome};
use super::loaded::{PolicyFile, read};
use crate::cli::labs::print_json;
use wasmspawner_policies::Patience;

const EXAMPLES: &str = "\
Examples:
  wasmspawner policy run guests.wasm quota.limits --config guests.yaml --user eve --group guests
  wasmspawner policy run guests.wasm build-pod.customize --config guests.yaml --input case.json
  wasmspawner images list --json | wasmspawner policy run rubin.wasm images --config rubin.yaml --input -

The input (YAML or JSON), of which everything may be left out:
  user: {name: ada, uid: 1000, gid: 1000, groups: [science, {name: staff, gid: 2000}], email: .., display_name: ..}
  server: gpu                                   # the default server without it
  options: {size: small}                        # for form.parse as submitted, otherwise as parsed
  action: spawn                                 # of authorize.decide: spawn, stop, start_kernel, dask_pool, scale
  child: {kind: kernel, name: python3}          # or dask-pool, with `workers`
  use: {labs: 1, kernels: 0, dask_pools: 0, dask_workers: 0, cpu_millis: 500, memory_bytes: 1073741824}
  past_use: [{days_ago: 1, lab_seconds: 7200, cpu_seconds: 3600, memory_gib_seconds: 7200}]    # 0 is today;
                                          # also kernel_seconds and dask_worker_seconds
  workload: {workload: deployment/shop/web, containers: [{name: web, image: web:1}], volumes: [{name: v, source: configMap}]}
  event: {what: failed, took_ms: 1200, reason: ImagePullBackOff}    # of events.on-event: spawned, ready, failed, stopped, denied
  images: {repositories: [{name, images: [{tag, digest, nodes_with}]}], nodes: [{name}]}    # as GET /images

The answer is the policy's, in JSON, without what has no value; a refusal is {\"error\": {\"kind\": \"denied\", \"message\": ..}} and the
exit code 1. The hook `images` prints all that follows from the images of the input; its input may also be the answer of GET
/images alone.";

/// Arguments of `policy run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArgs {
    #[command(flatten)]
    policy: PolicyFile,
    /// The hook, such as quota.limits
    hook: Runnable,
    /// What the hook is asked, as YAML or JSON; - for standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// The user who asks, in place of the input's
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A further group of the user; may be repeated
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
}

/// The hook or hooks to try.
#[derive(Clone, Copy, Debug)]
enum Runnable {
    Hook(HookName),
    /// The menu of images, the images that nodes are to have, and those that nodes lack.
    Images,
}

impl ValueEnum for Runnable {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Runnable>> = LazyLock::new(|| {
            let hooks = HookName::value_variants().iter().copied().map(Runnable::Hook);
            hooks.chain([Runnable::Images]).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        match self {
            Self::Hook(hook) => hook.to_possible_value(),
            Self::Images => Some(
                clap::builder::PossibleValue::new("images")
                    .help("The menu, what nodes are to have, and what they lack"),
            ),
        }
    }
}

impl RunArgs {
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let Runnable::Hook(hook) = self.hook else {
            self.images(out).await?;
            return Ok(ExitCode::SUCCESS);
        };
        let case: Case = self.input.as_deref().map(read).transpose()?.unwrap_or_default();
        let case = case.by(self.user, self.groups);
        let policies = self.policy.load(self.policy.config()?, case.images.inventory()?).await?;
        let answer = Patience::default().ask(|| hook.ask(&policies, &case)).await;
        if let Ok(None) = answer {
            bail!(hook.missing(&policies));
        }
        let outcome = outcome(answer);
        print_json(out, &outcome)?;
        Ok(if is_error(&outcome) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Prints the answers of the policy to all questions about images.
    async fn images(&self, out: &mut impl Write) -> anyhow::Result<()> {
        let input: Value = self.input.as_deref().map(read).transpose()?.unwrap_or_else(|| json!({}));
        let named = || self.input.as_deref().unwrap_or(Path::new("-")).display().to_string();
        let case = Case::about_images(input).with_context(named)?;
        let policies = self.policy.load(self.policy.config()?, case.images.inventory()?).await?;
        let case = case.by(self.user.clone(), self.groups.clone());
        let context = FormContext { user: case.user(), server: case.server };
        let menu = policies.image_menu(&context).await?.map(|answer| answer.value);
        let wanted = policies.prepull().await?;
        let known = policies.inventory();
        let (registries, nodes) = (known.registries(), known.nodes());
        let needs =
            Needs::from_wanted(&wanted, &registries, &nodes, &PullHistory::default(), Timestamp::now());
        print_json(out, &json!({ "menu": menu, "prepull": wanted, "missing": needs.missing }))
    }
}
