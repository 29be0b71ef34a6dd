//! `wasmspawner token`

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use wasmspawner_core::access::{Scope, ScopeSet};
use wasmspawner_core::names::Username;
use wasmspawner_core::token::{TokenDigest, TokenEntry};

use super::config_args::default_state_dir;
use crate::one_machine::random_token;

/// Prints a new token that the running one-machine service accepts from now on.
#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// The state directory of the service [default: the user's state directory]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    who: TokenFor,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TokenFor {
    /// For this user's own labs
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// For an administrator
    #[arg(long)]
    admin: bool,
    /// For JupyterHub, which on one machine may also start labs for its users
    #[arg(long)]
    hub: bool,
}

impl TokenArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let state_dir = match self.state_dir {
            Some(state_dir) => state_dir,
            None => default_state_dir()?,
        };
        let (user, scopes) = self.who.credential()?;
        writeln!(out, "{}", mint(&tokens_file(&state_dir), user, scopes)?)?;
        Ok(())
    }
}

/// The file with the tokens of the one-machine mode.
pub(super) fn tokens_file(state_dir: &Path) -> PathBuf {
    state_dir.join("tokens.yaml")
}

/// Adds a new administrator's token to the file and returns it.
pub(super) fn mint_for_admin(tokens_file: &Path) -> anyhow::Result<String> {
    mint(tokens_file, Username::parse("admin")?, [Scope::AdminNotebook].into())
}

fn mint(tokens_file: &Path, user: Username, scopes: ScopeSet) -> anyhow::Result<String> {
    let token = random_token();
    let entry = TokenEntry {
        sha256: TokenDigest::of(&token),
        user,
        scopes,
        uid: None,
        gid: None,
        groups: Vec::new(),
    };
    append(tokens_file, &entry.to_line()?).with_context(|| {
        format!("{} cannot be written; is --state-dir that of a service that has run?", tokens_file.display())
    })?;
    Ok(token)
}

impl TokenFor {
    fn credential(self) -> anyhow::Result<(Username, ScopeSet)> {
        Ok(match self {
            Self { user: Some(user), .. } => (Username::parse(user)?, [Scope::ExecNotebook].into()),
            Self { admin: true, .. } => (Username::parse("admin")?, [Scope::AdminNotebook].into()),
            Self { hub: true, .. } => {
                (Username::parse("jupyterhub")?, [Scope::AdminJupyterhub, Scope::AdminNotebook].into())
            }
            Self { .. } => bail!("say whom the token is for: --user NAME, --admin or --hub"),
        })
    }
}

/// Appends the line in a single write, so that the lines of two concurrent callers do not mix.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(file)?.write_all(line.as_bytes())
}
