//! `wasmspawner policy dev`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::Args;

use super::build::{Built, build};
use super::list::ListedPolicy;
use super::loaded::PolicyFile;
use super::sources::{Sources, State};
use super::test::Comparison;
use super::validate::problems;
use crate::cli::labs::{ConnectionArgs, Service};
use crate::cli::plain::plain;

const EXAMPLES: &str = "\
Examples:
  wasmspawner policy dev my-policy
  wasmspawner policy dev my-policy --config site.yaml --cases site-cases
  wasmspawner policy dev my-policy --reload --state-dir DIR      and a running service uses it at once

It ends with Ctrl-C, and not with an error: the next change is the next attempt. With --reload, the service loads its policies again
after a policy was built whose configuration and cases are good; its configuration names the component as `path`.";

/// The number of changed files that are named.
const NAMED: usize = 3;

/// Arguments of `policy dev`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DevArgs {
    /// The folder of the policy, with its Cargo.toml, pyproject.toml or package.json
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The policy's configuration, as YAML or JSON [default: config.yaml in the folder, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A folder of cases, or one case [default: cases in the folder, if it is there]
    #[arg(long, value_name = "PATH")]
    cases: Option<PathBuf>,
    /// Have the running service load its policies again after each good build
    #[arg(long)]
    reload: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl DevArgs {
    pub(super) async fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        if !self.folder.is_dir() {
            bail!("{} is no folder; `wasmspawner policy new` makes a policy", self.folder.display());
        }
        let service = self.reload.then(|| self.connection.open()).transpose()?;
        let others = [&self.config, &self.cases].into_iter().flatten().cloned();
        let sources = Sources::new([self.folder.clone()].into_iter().chain(others));
        // A change during a build counts for the next one.
        let mut state = sources.state();
        loop {
            if let Err(error) = self.attempt(service.as_ref(), out).await {
                writeln!(out, "failed: {}", plain_lines(&format!("{error:#}")))?;
            }
            writeln!(out, "waiting for a change in {}; Ctrl-C ends\n", self.folder.display())?;
            let changed = sources.changed(&state).await;
            writeln!(out, "changed: {}", self.changes(&changed, &state))?;
            state = changed;
        }
    }

    /// Builds the policy, tries it, and makes the service use it.
    async fn attempt(&self, service: Option<&Service>, out: &mut impl Write) -> anyhow::Result<()> {
        let built = build(&self.folder)?;
        write!(out, "built: ")?;
        built.tell(out)?;
        let config = self.config.clone().or_else(|| self.own("config.yaml"));
        let named = config.as_deref().map_or("no configuration".into(), |file| file.display().to_string());
        let policy = PolicyFile { policy: built.component.clone(), config };
        let problems = problems(&policy).await?;
        for problem in &problems {
            writeln!(out, "{named}: {}", plain(&problem.to_string()))?;
        }
        if !problems.is_empty() {
            bail!("the policy does not accept its configuration");
        }
        writeln!(out, "{named}: ok")?;
        if let Some(cases) = self.cases.clone().or_else(|| self.own("cases")) {
            let comparison = Comparison { policy: &policy, update: false, only_failures: true };
            if comparison.run(&cases, out).await? > 0 {
                bail!(
                    "the answers are not those that the cases expect; `wasmspawner policy test --update` writes them"
                );
            }
        }
        match service {
            Some(service) => reload(service, &built, out).await,
            None => Ok(()),
        }
    }

    /// Returns the path of a part of the folder, if it exists.
    fn own(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.join(name)).filter(|path| path.exists())
    }

    fn changes(&self, now: &State, before: &State) -> String {
        let changes = now.changes_since(before);
        let shown = |file: &&Path| {
            let file = file.strip_prefix(&self.folder).unwrap_or(file);
            plain(&file.display().to_string()).into_owned()
        };
        let first: Vec<String> = changes.iter().take(NAMED).map(shown).collect();
        match changes.len().saturating_sub(NAMED) {
            0 => first.join(", "),
            more => format!("{} and {more} more", first.join(", ")),
        }
    }
}

/// Makes the service load its policies again, and reports whether this one is among them.
async fn reload(service: &Service, built: &Built, out: &mut impl Write) -> anyhow::Result<()> {
    let answer = service.reload_policies().await;
    let answer = answer.map_err(|error| anyhow!("the service does not use it: {error:#}"))?;
    let policies: Vec<ListedPolicy> = serde_json::from_value(answer)?;
    let digest = built.digest.to_string();
    let live = policies.iter().find(|policy| policy.digest == digest);
    let compared = policies.iter().find(|policy| {
        policy.candidate.as_ref().is_some_and(|candidate| candidate.digest.as_ref() == Some(&digest))
    });
    match (live, compared) {
        (Some(policy), _) => writeln!(out, "service: in use as the policy {}", plain(&policy.name))?,
        (None, Some(policy)) => {
            writeln!(out, "service: in use as the candidate of the policy {}", plain(&policy.name))?;
        }
        (None, None) => {
            let named = policies.iter().map(|policy| format!("{} is {}", policy.name, policy.source));
            let named = named.collect::<Vec<_>>().join(", ");
            let named = if named.is_empty() { "it has no policies".to_owned() } else { named };
            let file = built.component.canonicalize().unwrap_or_else(|_| built.component.clone());
            bail!(
                "the service has loaded its policies again, but none of them is this one ({named}); write `path: {}` into \
                 its configuration",
                file.display()
            );
        }
    }
    Ok(())
}

/// Escapes each line of a message, so that it cannot control the terminal.
fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}
