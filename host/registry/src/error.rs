use std::fmt;
use std::path::PathBuf;

use tokio_rustls::rustls;

/// A setting for access to a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The file with logins.
    CredentialsFile,
    /// The file with certificate authorities.
    CaFile,
    /// The registries without TLS.
    PlainHttp,
}

impl Setting {
    /// Returns the key of the setting in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::CredentialsFile => "registries.credentials_file",
            Self::CaFile => "registries.ca_file",
            Self::PlainHttp => "registries.plain_http",
        }
    }

    /// Returns the command-line option of the setting.
    pub fn option(self) -> &'static str {
        match self {
            Self::CredentialsFile => "--credentials-file",
            Self::CaFile => "--ca-file",
            Self::PlainHttp => "--plain-http",
        }
    }
}

/// The reason that a registry cannot be read from, or written to.
#[derive(Debug)]
pub enum RegistryError {
    /// The file with credentials, or that with certificate authorities, cannot be used.
    File {
        /// The setting that names the file.
        setting: Setting,
        /// The file.
        path: PathBuf,
        /// A description of the problem.
        problem: String,
    },
    /// The registry denies access.
    Refused {
        /// True if there is a login for the registry.
        login: bool,
    },
    /// The registry has no object with this name and tag.
    NotFound,
    /// The content or the answer is not what was expected.
    Unusable(String),
    /// The content is larger than allowed.
    TooLarge {
        /// The size in bytes: the size that the registry stated, or else the number of bytes received so far.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The registry cannot be reached, or has an internal failure.
    Away {
        /// A description of the failure.
        problem: String,
        /// A setting that may solve the problem.
        remedy: Option<Setting>,
    },
}

impl RegistryError {
    pub(super) fn unusable(problem: impl Into<String>) -> Self {
        Self::Unusable(problem.into())
    }

    /// Creates the error of a registry that did not answer.
    pub fn away(problem: impl Into<String>) -> Self {
        Self::Away { problem: problem.into(), remedy: None }
    }

    /// Returns true if the registry did not answer, so that an earlier answer may still be valid.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Away { .. })
    }

    /// Returns the message. `name` returns the reader's name for a setting: a key of the configuration, or an option of
    /// a command.
    pub fn message(&self, name: impl Fn(Setting) -> &'static str) -> String {
        match self {
            Self::File { setting, path, problem } => {
                format!("{}: {}: {problem}", name(*setting), path.display())
            }
            Self::Refused { login } => {
                let file = name(Setting::CredentialsFile);
                let why = if *login {
                    format!("the login in `{file}` may be wrong")
                } else {
                    format!("a private registry needs a login in `{file}`")
                };
                format!("the registry refuses access, or it does not exist there; {why}")
            }
            Self::NotFound => "the registry has nothing of this name and tag".to_owned(),
            Self::Unusable(problem) => problem.clone(),
            Self::TooLarge { size, limit } => format!("it has {size} bytes; {limit} are allowed"),
            Self::Away { problem, remedy } => {
                let remedy = match remedy {
                    Some(setting @ Setting::PlainHttp) => {
                        format!("; a registry without TLS is listed in `{}`", name(*setting))
                    }
                    Some(setting @ Setting::CaFile) => {
                        format!("; `{}` names the authorities of a site's own certificates", name(*setting))
                    }
                    Some(Setting::CredentialsFile) | None => String::new(),
                };
                format!("the registry does not answer: {problem}{remedy}")
            }
        }
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(Setting::key))
    }
}

impl std::error::Error for RegistryError {}

impl From<reqwest::Error> for RegistryError {
    fn from(error: reqwest::Error) -> Self {
        let mut problem = match () {
            () if error.is_timeout() => "it takes too long",
            () if error.is_connect() => "it cannot be reached",
            () => "the connection failed",
        }
        .to_owned();
        let mut remedy = None;
        // The URL of the request may contain credentials. The innermost cause does not include it.
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            if error.source().is_none() {
                problem = format!("{problem}: {error}");
                remedy = remedy_for(error);
            }
            cause = error.source();
        }
        Self::Away { problem, remedy }
    }
}

/// Returns the setting that may solve an error of TLS.
fn remedy_for(error: &(dyn std::error::Error + 'static)) -> Option<Setting> {
    let mut innermost = error;
    while let Some(inner) = innermost.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        innermost = inner;
    }
    match innermost.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidMessage(_) => Some(Setting::PlainHttp),
        rustls::Error::InvalidCertificate(_) => Some(Setting::CaFile),
        _ => None,
    }
}
