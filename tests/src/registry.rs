//! A container registry on this machine: Debian's docker-registry, which the tests in Python install.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::service::own_address;

/// The time limit for the start of the registry.
const START: Duration = Duration::from_secs(30);

/// A running registry; it ends when this value is dropped.
pub struct Registry {
    process: Child,
    _folder: TempDir,
    /// The address, `host:port`.
    pub address: String,
}

impl Registry {
    /// Starts a registry without TLS. `htpasswd` is the file of its logins; without it, everybody may read and write.
    /// Returns `None` and prints a message if the program is not installed.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub async fn start(htpasswd: Option<&str>) -> anyhow::Result<Option<Self>> {
        let Some(program) = program() else {
            skipped();
            return Ok(None);
        };
        let folder = tempfile::tempdir()?;
        let address = format!("{}:5000", own_address());
        let mut config = json!({
            "version": 0.1,
            "log": { "level": "warn", "accesslog": { "disabled": true } },
            "storage": { "filesystem": { "rootdirectory": folder.path().join("artifacts") } },
            "http": { "addr": address, "secret": "one-process-alone" },
        });
        if let Some(logins) = htpasswd {
            let file = folder.path().join("htpasswd");
            std::fs::write(&file, logins)?;
            config["auth"] = json!({ "htpasswd": { "realm": "test", "path": file } });
        }
        let file = folder.path().join("registry.json");
        std::fs::write(&file, config.to_string())?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        let mut command = Command::new(program);
        command.arg("serve").arg(file).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = command.spawn().context("the registry does not start")?;
        let registry = Self { process, _folder: folder, address };
        tokio::time::timeout(START, registry.answers()).await.context("the registry does not answer")?;
        Ok(Some(registry))
    }

    async fn answers(&self) {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        while TcpStream::connect(&self.address).await.is_err() {
            again.tick().await;
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn skipped() {
    println!("skipped: a registry is needed; `make e2e` installs one");
}

/// The program, at the place where `tests/node/debian.py` installs it.
fn program() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let cache = cache.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")))?;
    let folders = cache.join("wasmspawner").read_dir().ok()?.filter_map(Result::ok);
    let named = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with("docker-registry-"));
    let complete = named.map(|entry| entry.path()).find(|folder| folder.join("complete").exists())?;
    Some(complete.join("usr/bin/docker-registry"))
}
