//! The command line options that choose the configuration, and their application to it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use serde::Deserialize as _;
use serde_path_to_error::Track;
use wasmspawner_core::config::auth::{AuthConfig, AuthMode, IdentityEntry, StaticAuth};
use wasmspawner_core::config::{Config, ConfigFile, DataSource, PublicKeySource, RuntimeKind};

use super::blueprint_files;
use crate::run::ConfigSource;
use wasmspawner_files::yaml_problem;

/// The command line options that choose the configuration.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// The configuration file
    #[arg(long, short, value_name = "FILE", env = "WASMSPAWNER_CONFIG", required_unless_present = "local")]
    pub config: Option<PathBuf>,
    /// One-machine mode: settings that the configuration leaves out get values for trying things out on this machine
    #[arg(long)]
    pub local: bool,
    /// Directory for the service's own files on this machine [default with --local: the user's state directory]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Address and port of the REST API
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// What runs the containers of the one-machine cluster: process or simulated
    #[arg(long, value_name = "KIND", value_parser = runtime, requires = "local")]
    pub runtime: Option<RuntimeKind>,
}

fn runtime(text: &str) -> Result<RuntimeKind, String> {
    match text {
        "process" => Ok(RuntimeKind::Process),
        "simulated" => Ok(RuntimeKind::Simulated),
        _ => Err("it is `process` or `simulated`".to_owned()),
    }
}

impl ConfigArgs {
    /// Reads and checks the configuration. The error lists every problem with its configuration key.
    pub fn load(&self) -> anyhow::Result<Config> {
        let (_, config) = self.source().load().map_err(anyhow::Error::msg)?;
        Ok(config)
    }

    /// Returns the source of the configuration, so that it can be read again.
    pub fn source(&self) -> ConfigSource {
        let args = self.clone();
        let read = move || args.file().map_err(|error| format!("{error:#}"));
        ConfigSource { path: self.config.clone(), read: Arc::new(read) }
    }

    /// Returns the configuration's file name, or `--local`; the prefix of error messages.
    pub fn origin(&self) -> String {
        self.source().origin()
    }

    /// Reads the configuration and applies the command line options to it. The values are not checked yet.
    pub fn file(&self) -> anyhow::Result<ConfigFile> {
        let mut file = self.read()?;
        if let Some(listen) = self.listen {
            file.http.listen = listen;
        }
        file.state_dir = self.state_dir.clone().or(file.state_dir);
        if self.local {
            fill_in(&mut file, self.runtime)?;
        }
        Ok(file)
    }

    fn read(&self) -> anyhow::Result<ConfigFile> {
        let Some(path) = &self.config else { return Ok(ConfigFile::default()) };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the configuration {} cannot be read", path.display()))?;
        let mut file = parse(&text).map_err(|message| {
            anyhow::anyhow!("the configuration {} cannot be used: {message}", path.display())
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for policy in &mut file.policies {
            policy.path = policy.path.take().map(|path| folder.join(path));
            let mut data: Vec<_> = policy.data.values_mut().collect();
            if let Some(candidate) = &mut policy.candidate {
                candidate.path = candidate.path.take().map(|path| folder.join(path));
                data.extend(candidate.data.iter_mut().flat_map(|data| data.values_mut()));
            }
            let keys = policy.signed_by.iter_mut().flatten().filter_map(PublicKeySource::file);
            for file in data.into_iter().flat_map(DataSource::files).chain(keys) {
                *file = folder.join(&*file);
            }
        }
        blueprint_files::add(&mut file.blueprints, folder)?;
        Ok(file)
    }
}

/// Parses the file's text. An error names the key and the position: `limits.spawn: line 3 column 10: ...`.
fn parse(text: &str) -> Result<ConfigFile, String> {
    let mut track = Track::new();
    let parsed = serde_saphyr::with_deserializer_from_str(text, |yaml| {
        ConfigFile::deserialize(serde_path_to_error::Deserializer::new(yaml, &mut track))
    });
    parsed.map_err(|error| {
        let message = yaml_problem::in_one_line(&error);
        let key = track.path().to_string();
        if key == "." { message } else { format!("{key}: {message}") }
    })
}

/// Fills in the settings that the one-machine mode needs: static tokens, the embedded cluster and loopback addresses.
fn fill_in(file: &mut ConfigFile, runtime: Option<RuntimeKind>) -> anyhow::Result<()> {
    let state_dir = match &file.state_dir {
        Some(state_dir) => state_dir.clone(),
        None => default_state_dir()?,
    };
    file.state_dir = Some(state_dir.clone());
    let auth = file.auth.get_or_insert_with(|| AuthConfig {
        modes: vec![AuthMode::Static],
        r#static: Some(StaticAuth { tokens_file: state_dir.join("tokens.yaml") }),
        jupyterhub: None,
        headers: None,
        oidc: None,
        identities: wasmspawner_core::config::auth::Identities::default(),
    });
    auth.identities.default.get_or_insert_with(own_identity);
    let port = file.http.listen.port();
    if file.http.listen.ip().is_unspecified() {
        file.http.listen = SocketAddr::from(([127, 0, 0, 1], port));
    }
    if file.http.health_listen.ip().is_unspecified() {
        file.http.health_listen = SocketAddr::from(([127, 0, 0, 1], port.saturating_add(1)));
    }
    let embedded = file.embedded.get_or_insert_default();
    if let Some(runtime) = runtime {
        embedded.runtime = runtime;
    }
    file.lab.image.get_or_insert_with(|| "local/lab:latest".to_owned());
    Ok(())
}

/// The identity of labs: the uid and gid of the service's own process. When the service runs as root, 1000 and 1000 are
/// used instead, because no lab is started as root.
fn own_identity() -> IdentityEntry {
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let (uid, gid) = if uid.is_root() { (1000, 1000) } else { (uid.as_raw(), gid.as_raw()) };
    IdentityEntry { uid, gid, groups: Vec::new(), email: None, display_name: None }
}

/// Returns the directory `wasmspawner` below the XDG state directory.
pub(super) fn default_state_dir() -> anyhow::Result<PathBuf> {
    let xdg = std::env::var_os("XDG_STATE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    let base =
        xdg.or(home).context("neither XDG_STATE_HOME nor HOME is set; name a directory with --state-dir")?;
    Ok(base.join("wasmspawner"))
}
