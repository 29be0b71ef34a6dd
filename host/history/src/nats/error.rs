//! Why NATS cannot be used now.

use std::error::Error;
use std::path::PathBuf;

/// The reason why NATS cannot be used now. It is tried again in any case.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// The file of the login cannot be read.
    #[error("history.nats.{key}: cannot read {}: {problem}", path.display())]
    Unreadable {
        /// The key with the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        problem: String,
    },
    /// Others may read the file of the login.
    #[error("history.nats.{key}: {} has mode {mode:04o}, so others can read it; run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// The key with the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The file's permission bits.
        mode: u32,
    },
    /// The file of the login has no login.
    #[error("history.nats.{key}: {} has no {expected}", path.display())]
    NoLogin {
        /// The key with the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What should be in it.
        expected: &'static str,
    },
    /// There is no connection.
    #[error("cannot connect to NATS at {servers} (history.nats.servers)")]
    Connect {
        /// The addresses.
        servers: String,
        /// The library's error.
        #[source]
        source: async_nats::ConnectError,
    },
    /// A bucket or stream belongs to another installation.
    #[error(
        "history.nats.{key}: {name} belongs to the installation {owner} (kubernetes.instance); choose another name, \
         because each installation needs one of its own"
    )]
    Taken {
        /// The key with the name.
        key: &'static str,
        /// The name.
        name: String,
        /// The other installation.
        owner: String,
    },
    /// A request to `JetStream` has failed.
    #[error("NATS: cannot {action}")]
    JetStream {
        /// What was asked for.
        action: String,
        /// The library's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// NATS did not answer in time.
    #[error("NATS did not answer in time when asked to {action}")]
    TimedOut {
        /// What was asked for.
        action: &'static str,
    },
}

impl NatsError {
    /// A failed request to `JetStream`.
    pub(super) fn jetstream(
        action: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::JetStream { action: action.into(), source: source.into() }
    }
}

/// An error with its causes, for the log.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}
