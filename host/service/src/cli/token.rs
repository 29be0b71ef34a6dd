//! `wasmspawner token`

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use wasmspawner_core::names::Username;
use wasmspawner_core::users::access::{Scope, ScopeSet};
use wasmspawner_core::users::token::{TokenDigest, TokenEntry};

use super::config_args::default_state_dir;
use crate::one_machine::write_private;
use wasmspawner_kubernetes::random_token::random_token;

/// Prints a new token that the running one-machine service accepts from now on.
#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// The state directory of the service [default: the user's state directory]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    who: TokenFor,
    /// How long the token is valid, such as 8h or 90m [default: until its entry is removed from the file tokens.yaml]
    #[arg(long, value_name = "DURATION", value_parser = validity)]
    expires_in: Option<SignedDuration>,
}

/// The validity of the administrator's token that the command line makes for itself.
const OWN_TOKEN_VALID_FOR: SignedDuration = SignedDuration::from_hours(24);
/// The time before its expiry at which such a token is replaced, so that no command is interrupted by the expiry.
const REPLACE_BEFORE: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TokenFor {
    /// For this user's own labs
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// For an administrator
    #[arg(long)]
    admin: bool,
    /// For JupyterHub, which may read and stop labs and show forms; labs are started with tokens of their users
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
        writeln!(out, "{}", mint(&tokens_file(&state_dir), user, scopes, self.expires_in)?)?;
        Ok(())
    }
}

/// Returns the path of the file with the tokens of the one-machine mode.
pub(super) fn tokens_file(state_dir: &Path) -> PathBuf {
    state_dir.join("tokens.yaml")
}

/// Returns the administrator's token that the command line uses itself: that of an earlier command while it is valid,
/// else a new one.
pub(super) fn own_token(tokens_file: &Path) -> anyhow::Result<String> {
    let remembered = tokens_file.with_file_name("cli.token");
    if let Ok(token) = std::fs::read_to_string(&remembered)
        && is_listed(tokens_file, &token, Timestamp::now() + REPLACE_BEFORE)
    {
        return Ok(token);
    }
    let user = Username::parse("admin")?;
    let token = mint(tokens_file, user, [Scope::AdminNotebook].into(), Some(OWN_TOKEN_VALID_FOR))?;
    write_private(&remembered, &token)?;
    Ok(token)
}

/// True if the file lists the token and it is valid at the time `at`.
fn is_listed(tokens_file: &Path, token: &str, at: Timestamp) -> bool {
    let entries = std::fs::read_to_string(tokens_file).ok();
    let entries = entries.and_then(|text| serde_saphyr::from_str::<Vec<TokenEntry>>(&text).ok());
    let digest = TokenDigest::from_token(token);
    entries.into_iter().flatten().any(|entry| entry.sha256 == digest && entry.expired_at(at).is_none())
}

fn mint(
    tokens_file: &Path,
    user: Username,
    scopes: ScopeSet,
    valid_for: Option<SignedDuration>,
) -> anyhow::Result<String> {
    let token = random_token();
    let expires = valid_for.map(|span| Timestamp::now().checked_add(span)).transpose();
    let entry = TokenEntry {
        sha256: TokenDigest::from_token(&token),
        user,
        scopes,
        expires: expires.context("--expires-in: that is too far in the future")?,
        uid: None,
        gid: None,
        groups: Vec::new(),
    };
    append(tokens_file, &entry.to_line()?).with_context(|| {
        format!("{} cannot be written; is --state-dir that of a service that has run?", tokens_file.display())
    })?;
    Ok(token)
}

fn validity(text: &str) -> Result<SignedDuration, String> {
    match text.parse::<SignedDuration>() {
        Ok(span) if span > SignedDuration::ZERO => Ok(span),
        _ => Err("write a duration such as 30m, 8h or 720h".to_owned()),
    }
}

impl TokenFor {
    fn credential(self) -> anyhow::Result<(Username, ScopeSet)> {
        Ok(match self {
            Self { user: Some(user), .. } => (Username::parse(user)?, [Scope::ExecNotebook].into()),
            Self { admin: true, .. } => (Username::parse("admin")?, [Scope::AdminNotebook].into()),
            Self { hub: true, .. } => (Username::parse("jupyterhub")?, [Scope::AdminJupyterhub].into()),
            Self { .. } => bail!("say whom the token is for: --user NAME, --admin or --hub"),
        })
    }
}

/// Appends the line in a single write, so that the lines of two concurrent callers do not mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(file)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(tokens_file: &Path) -> Vec<TokenEntry> {
        serde_saphyr::from_str(&std::fs::read_to_string(tokens_file).unwrap()).unwrap()
    }

    #[test]
    fn the_command_line_reuses_its_token_while_it_is_listed_and_valid() {
        let folder = tempfile::tempdir().unwrap();
        let file = tokens_file(folder.path());
        std::fs::write(&file, "").unwrap();
        let first = own_token(&file).unwrap();
        assert_eq!(own_token(&file).unwrap(), first);
        assert_eq!(entries(&file).len(), 1);

        // Somebody removed the entry: another token is made.
        std::fs::write(&file, "").unwrap();
        let second = own_token(&file).unwrap();
        assert_ne!(second, first);

        // The token is about to expire: another token is made.
        let soon = Timestamp::now() + SignedDuration::from_mins(30);
        let line = TokenEntry { expires: Some(soon), ..entries(&file).remove(0) }.to_line().unwrap();
        std::fs::write(&file, line).unwrap();
        assert_ne!(own_token(&file).unwrap(), second);
        assert_eq!(entries(&file).len(), 2);
    }

    #[test]
    fn the_hub_s_token_starts_no_labs() {
        let (_, scopes) = TokenFor { user: None, admin: false, hub: true }.credential().unwrap();
        assert_eq!(scopes, [Scope::AdminJupyterhub].into());
    }

    #[test]
    fn only_positive_durations_are_valid() {
        for (text, expected) in
            [("8h", Ok(SignedDuration::from_hours(8))), ("0s", Err(())), ("soon", Err(()))]
        {
            assert_eq!(validity(text).map_err(drop), expected, "{text}");
        }
    }
}
