//! The options of commands that use a container registry.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use jiff::SignedDuration;
use oci_client::Reference;
use wasmspawner_core::config::RegistriesConfig;

use wasmspawner_registry::{Artifacts, RegistryError, Setting};

/// How a registry is reached. The options are those of `registries` in the configuration of the service.
#[derive(Debug, Args)]
pub(super) struct RegistryArgs {
    /// A file with logins, as `docker login` writes it, mode 0600; programs that keep passwords (`credsStore`) are not asked
    /// [default: config.json in `$DOCKER_CONFIG` or `~/.docker`, if it is there]
    #[arg(long, value_name = "FILE")]
    credentials_file: Option<PathBuf>,
    /// A PEM file with certificate authorities that are trusted in addition to the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// A registry, as host or host:port, that is asked without TLS; may be repeated
    #[arg(long, value_name = "REGISTRY", value_parser = registry)]
    plain_http: Vec<String>,
    /// How long a request may take; a large component takes long on a slow network
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=600))]
    timeout: u32,
}

fn registry(text: &str) -> Result<String, String> {
    if text.contains('/') {
        return Err("it is not a registry; write `host` or `host:port`".to_owned());
    }
    Ok(text.to_owned())
}

impl RegistryArgs {
    pub(super) fn artifacts(&self) -> Artifacts {
        Artifacts::new(RegistriesConfig {
            credentials_file: self.credentials_file.clone().or_else(docker_logins),
            ca_file: self.ca_file.clone(),
            plain_http: self.plain_http.clone(),
            timeout: SignedDuration::from_secs(self.timeout.into()),
        })
    }
}

/// Returns the file into which `docker login` writes, if it exists.
fn docker_logins() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("DOCKER_CONFIG").or_else(|| Some(named("HOME")?.join(".docker")))?;
    Some(folder.join("config.json")).filter(|file| file.is_file())
}

pub(super) fn reference(text: &str) -> anyhow::Result<Reference> {
    text.parse()
        .map_err(|error| anyhow!("{text:?} is not a reference such as ghcr.io/site/policy:1.2: {error}"))
}

/// Returns the error in terms of the command line, whose users have options and no configuration.
pub(super) fn refused(error: &RegistryError) -> anyhow::Error {
    anyhow!(error.message(Setting::option))
}
