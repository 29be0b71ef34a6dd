//! The launcher in a kernel's pod: a small program that starts the kernel's process, passes signals on to it, and
//! restarts it in the same pod, so that a restarted kernel keeps its address.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::json;

use super::Connection;
use crate::names::EnvName;
use crate::values::secret::SecretString;

/// The directory of the launcher's files in the pod.
pub const MOUNT_PATH: &str = "/run/wasmspawner/kernel";

/// The time in seconds for which a pod stays after its kernel has ended, in case the kernel is restarted.
const LINGER: u32 = 60;
/// The time in seconds that a kernel may take to end when its pod is deleted.
const STOP: u32 = 5;

/// A kernel as its client requests it.
#[derive(Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name of the kernel spec: `python3`.
    pub name: String,
    /// The kernel's command; `{connection_file}` stands for the path of the connection file.
    pub command: Vec<String>,
    /// Environment variables, in addition to those that every lab of the site has.
    pub env: BTreeMap<EnvName, String>,
    /// The working directory. Default: that of the lab.
    pub working_dir: Option<String>,
    /// The parameters of the connection to its clients.
    pub connection: Connection,
}

/// A kernel, and the data with which its launcher reaches the service.
#[derive(Clone)]
pub struct Launch {
    /// The kernel.
    pub kernel: Kernel,
    /// The URL of the kernel in the API.
    pub url: String,
    /// The token with which the launcher authenticates. It is valid for this kernel alone.
    pub token: SecretString,
    /// The source text of the launcher.
    pub program: &'static str,
    /// The source text of the module with which the launcher calls the service.
    pub link: &'static str,
}

/// Shows only the name of the kernel, because the rest may be secret.
impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Shows only the name of the kernel and the URL, because the rest may be secret.
impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("kernel", &self.kernel.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The launcher's files, by name.
pub type LauncherFiles = BTreeMap<&'static str, Vec<u8>>;

impl Launch {
    /// Returns the launcher's files. All are secret: the environment of a kernel may hold credentials.
    pub fn files(&self) -> LauncherFiles {
        let Kernel { name, command, env, working_dir, connection } = &self.kernel;
        let env: BTreeMap<&str, &String> = env.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let launch = json!({
            "url": self.url,
            "command": command,
            "env": env,
            "working_dir": working_dir,
            "linger_seconds": LINGER,
            "stop_seconds": STOP,
        });
        BTreeMap::from([
            ("service_link.py", self.link.as_bytes().to_vec()),
            ("launcher.py", self.program.as_bytes().to_vec()),
            ("launch.json", launch.to_string().into_bytes()),
            ("connection.json", connection.file(name).to_string().into_bytes()),
            ("token", self.token.expose().as_bytes().to_vec()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_gets_all_it_needs_and_a_log_gets_no_secret() {
        let connection = Connection {
            key: SecretString::new("the-key"),
            signature_scheme: "hmac-sha256".into(),
            curve: None,
        };
        let kernel = Kernel {
            name: "python3".into(),
            command: vec!["python".into(), "-f".into(), "{connection_file}".into()],
            env: [(EnvName::parse("PASSWORD").unwrap(), "hush".to_owned())].into(),
            working_dir: None,
            connection,
        };
        let launch = Launch {
            kernel,
            url: "http://s/k".into(),
            token: SecretString::new("the-token"),
            program: "print()",
            link: "link()",
        };
        let files = launch.files();
        let names: Vec<_> = files.keys().copied().collect();
        assert_eq!(names, ["connection.json", "launch.json", "launcher.py", "service_link.py", "token"]);
        let text: serde_json::Value = serde_json::from_slice(&files["launch.json"]).unwrap();
        assert_eq!(text["command"], json!(["python", "-f", "{connection_file}"]));
        assert_eq!(text["env"], json!({"PASSWORD": "hush"}));
        let shown = format!("{launch:?}");
        assert!(["hush", "the-key", "the-token"].iter().all(|secret| !shown.contains(secret)), "{shown}");
    }
}
