use std::fmt;
use std::path::PathBuf;

use tokio_rustls::rustls;

/// What is set to reach a registry.
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
    /// Its key in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::CredentialsFile => "registries.credentials_file",
            Self::CaFile => "registries.ca_file",
            Self::PlainHttp => "registries.plain_http",
        }
    }

    /// Its option of a command.
    pub fn option(self) -> &'static str {
        match self {
            Self::CredentialsFile => "--credentials-file",
            Self::CaFile => "--ca-file",
            Self::PlainHttp => "--plain-http",
        }
    }
}

/// Why something cannot be read from a registry, or stored there.
#[derive(Debug)]
pub enum RegistryError {
    /// The file with credentials, or that with certificate authorities, cannot be used.
    File {
        /// The setting that names the file.
        setting: Setting,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The registry does not allow this.
    Refused {
        /// Whether there is a login for the registry.
        login: bool,
    },
    /// The registry has no such thing.
    NotFound,
    /// There is something else than was expected.
    Unusable(String),
    /// It is larger than allowed.
    TooLarge {
        /// The size in bytes, as the registry says it, or as much as was received.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The registry cannot be reached, or has a failure of its own.
    Away {
        /// What went wrong.
        problem: String,
        /// What may have to be set.
        remedy: Option<Setting>,
    },
}

impl RegistryError {
    pub(super) fn unusable(problem: impl Into<String>) -> Self {
        Self::Unusable(problem.into())
    }

    /// The registry has not answered, for this reason.
    pub fn away(problem: impl Into<String>) -> Self {
        Self::Away { problem: problem.into(), remedy: None }
    }

    /// True if the registry has not answered the question, so that an earlier answer may still be right.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Away { .. })
    }

    /// The message. `name` is how the reader sets something: by a key of the configuration, or by an option of a command.
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
        // The URL of the request may contain credentials, and is not in the innermost cause.
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

/// What the reader can set about an error of TLS.
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
