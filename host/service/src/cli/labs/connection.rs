use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use reqwest::Url;

use super::service::Service;
use crate::cli::config_args::default_state_dir;
use crate::cli::token::{own_token, tokens_file};
use crate::run::ADDRESS_FILE;

const DEFAULT_URL: &str = "http://127.0.0.1:8090/spawner/v1";

/// Which service to call, and with which credential.
#[derive(Debug, Args)]
pub(in crate::cli) struct ConnectionArgs {
    /// URL of the service's API [default: the one that the service of the state directory last listened on, else port
    /// 8090 of this machine]
    #[arg(long, global = true, value_name = "URL", env = "WASMSPAWNER_URL")]
    url: Option<String>,
    /// The bearer token; other users can see it in the process list, so prefer the variable
    #[arg(long, global = true, env = "WASMSPAWNER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// State directory of a one-machine service: an administrator's token of a day is made there and used instead of --token
    /// [default without a token: the user's state directory]
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl ConnectionArgs {
    pub(in crate::cli) fn open(&self) -> anyhow::Result<Service> {
        Service::new(base(&self.address())?, self.credential()?)
    }

    /// Returns the URL from the command line, else the one that the service wrote into its state directory, else
    /// `DEFAULT_URL`.
    fn address(&self) -> String {
        let state_dir = self.state_dir.clone().or_else(|| default_state_dir().ok());
        let written = || std::fs::read_to_string(state_dir?.join(ADDRESS_FILE)).ok();
        self.url.clone().or_else(written).unwrap_or_else(|| DEFAULT_URL.to_owned()).trim().to_owned()
    }

    fn credential(&self) -> anyhow::Result<String> {
        if let Some(token) = self.token.as_ref().filter(|_| self.state_dir.is_none()) {
            return Ok(token.trim().to_owned());
        }
        let file = match &self.state_dir {
            Some(state_dir) => tokens_file(state_dir),
            None => tokens_file(&default_state_dir()?),
        };
        if !file.exists() {
            bail!(
                "no credential: set WASMSPAWNER_TOKEN or give --token; for a service of the one-machine mode give its \
                 --state-dir ({} is missing)",
                file.display()
            );
        }
        own_token(&file)
    }
}

/// Parses the API's address, to which paths are appended.
fn base(url: &str) -> anyhow::Result<Url> {
    let parsed = Url::parse(url).with_context(|| format!("--url: `{url}` is no URL"))?;
    if parsed.cannot_be_a_base() || !matches!(parsed.scheme(), "http" | "https") {
        bail!("--url: write http://HOST:PORT/spawner/v1, not `{url}`");
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(token: Option<&str>, state_dir: Option<PathBuf>) -> ConnectionArgs {
        ConnectionArgs { url: None, token: token.map(str::to_owned), state_dir }
    }

    #[test]
    fn a_state_directory_wins_over_a_token_of_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let here = || Some(folder.path().to_owned());
        assert_eq!(connection(Some("t\n"), None).credential().unwrap(), "t");
        let error = connection(Some("t"), here()).credential().unwrap_err().to_string();
        assert!(error.contains("WASMSPAWNER_TOKEN") && error.contains("tokens.yaml is missing"), "{error}");
        std::fs::write(folder.path().join("tokens.yaml"), "").unwrap();
        let minted = connection(Some("t"), here()).credential().unwrap();
        let digest = wasmspawner_core::users::token::TokenDigest::from_token(&minted).to_hex();
        assert!(std::fs::read_to_string(folder.path().join("tokens.yaml")).unwrap().contains(&digest));
    }

    #[test]
    fn a_state_directory_says_where_its_service_listens() {
        let folder = tempfile::tempdir().unwrap();
        let mut args = connection(Some("t"), Some(folder.path().to_owned()));
        assert_eq!(args.address(), DEFAULT_URL);
        std::fs::write(folder.path().join(ADDRESS_FILE), "http://127.0.0.1:9000/spawner/v1\n").unwrap();
        assert_eq!(args.address(), "http://127.0.0.1:9000/spawner/v1");
        args.url = Some("http://elsewhere/".into());
        assert_eq!(args.address(), "http://elsewhere/");
    }

    #[test]
    fn a_url_that_is_not_http_is_refused() {
        for url in ["", "localhost:8090", "ftp://x", "mailto:ada"] {
            assert!(base(url).unwrap_err().to_string().starts_with("--url: "), "{url}");
        }
    }
}
