//! `history`: where the history of operations is, beside or instead of the service's own disk.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InvalidSetting;

/// Where the history of operations is. Without this section it is in `state_dir`, for this process alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryConfig {
    /// NATS with `JetStream`, where all processes of the installation and other programs read the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nats: Option<NatsConfig>,
}

/// A history in NATS. The service makes the buckets and the stream unless they exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NatsConfig {
    /// The servers of one NATS: `nats://HOST[:PORT]`, or `tls://HOST[:PORT]` for TLS only. No others are used, even if these
    /// name them.
    pub servers: Vec<NatsServer>,
    /// The user, with `password_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A file with the user's password. Only the files' owner may have access to this file and the next two (mode 0600).
    /// The service reads them again for each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// A file with a token, instead of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// A file with a JWT and its key, as `nsc` writes it (`.creds`), instead of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<PathBuf>,
    /// A file with the certificates (PEM) that sign those of the servers, instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The key-value bucket with the state of each operation. Installations that share a NATS need different names for this
    /// and the next two, above all those with the same `kubernetes.instance` in different clusters, which are not told apart.
    #[serde(default = "jobs_bucket")]
    pub jobs_bucket: NatsName,
    /// The key-value bucket with what users have used.
    #[serde(default = "usage_bucket")]
    pub usage_bucket: NatsName,
    /// The stream of events. Its subjects are `STREAM.JOB_ID`.
    #[serde(default = "stream")]
    pub stream: NatsName,
    /// The number of servers that have a copy of each entry: 1 to 5.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 5))]
    pub replicas: u8,
    /// Largest number of changes that wait in memory while NATS is away or slow. Beyond it the oldest are dropped. A change
    /// takes 0.5 KB or more, as much as its event.
    #[serde(default = "queue")]
    #[schemars(range(min = 1))]
    pub queue: usize,
}

/// The validated section `history.nats`.
#[derive(Debug, Clone)]
pub struct Nats {
    /// The servers; at least one.
    pub servers: Vec<NatsServer>,
    /// How the service logs in.
    pub login: NatsLogin,
    /// The certificates that sign those of the servers.
    pub ca_file: Option<PathBuf>,
    /// The bucket with the state of each operation.
    pub jobs_bucket: NatsName,
    /// The bucket with what users have used.
    pub usage_bucket: NatsName,
    /// The stream of events.
    pub stream: NatsName,
    /// The number of copies of each entry.
    pub replicas: u8,
    /// Largest number of changes that wait in memory.
    pub queue: usize,
}

/// How the service logs in to NATS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NatsLogin {
    /// Without a login.
    None,
    /// With a password.
    User {
        /// The user.
        name: String,
        /// The file with the password.
        password_file: PathBuf,
    },
    /// With the token in this file.
    Token(PathBuf),
    /// With the JWT and the key in this file.
    Credentials(PathBuf),
}

/// The address of a NATS server, without a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct NatsServer(String);

/// The name of a stream or of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct NatsName(String);

impl NatsServer {
    /// The address as a URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if the address is for TLS only.
    pub fn is_tls(&self) -> bool {
        self.0.starts_with("tls://")
    }
}

impl TryFrom<String> for NatsServer {
    type Error = String;

    fn try_from(url: String) -> Result<Self, Self::Error> {
        let rest = url.strip_prefix("nats://").or_else(|| url.strip_prefix("tls://"));
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        match rest {
            Some(rest) if !rest.is_empty() && rest.bytes().all(allowed) => Ok(Self(url)),
            // The text may contain a password, so the message does not.
            _ => Err("is not the address of a NATS server: write nats://HOST[:PORT] or tls://HOST[:PORT]; a login belongs \
                      into a file (password_file, token_file or credentials_file)"
                .to_owned()),
        }
    }
}

impl From<NatsServer> for String {
    fn from(server: NatsServer) -> Self {
        server.0
    }
}

impl NatsName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for NatsName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed) {
            return Ok(Self(name));
        }
        Err(format!("{name:?} is not a name of a stream or bucket: write 1 to 64 of A-Z, a-z, 0-9, - and _"))
    }
}

impl From<NatsName> for String {
    fn from(name: NatsName) -> Self {
        name.0
    }
}

fn jobs_bucket() -> NatsName {
    NatsName("wasmspawner-jobs".to_owned())
}

fn usage_bucket() -> NatsName {
    NatsName("wasmspawner-usage".to_owned())
}

fn stream() -> NatsName {
    NatsName("WASMSPAWNER_EVENTS".to_owned())
}

fn one() -> u8 {
    1
}

fn queue() -> usize {
    100_000
}

impl HistoryConfig {
    /// Checks the section.
    pub fn validate(self) -> Result<Option<Nats>, InvalidSetting> {
        self.nats.map(NatsConfig::validate).transpose()
    }
}

impl NatsConfig {
    fn validate(self) -> Result<Nats, InvalidSetting> {
        let wrong =
            |key: &str, problem: &str| Err(InvalidSetting::new(format!("history.nats.{key}"), problem));
        if self.servers.is_empty() {
            return wrong("servers", "is empty; name a server: nats://HOST:4222");
        }
        if !(1..=5).contains(&self.replicas) {
            return wrong("replicas", &format!("is {}; it must be 1 to 5", self.replicas));
        }
        if self.queue == 0 {
            return wrong("queue", "is 0, so that nothing could be written; write at least 1");
        }
        if self.jobs_bucket == self.usage_bucket {
            return wrong("usage_bucket", "is the name of the jobs_bucket, too; choose another");
        }
        let login = match (self.user, self.password_file, self.token_file, self.credentials_file) {
            (None, None, None, None) => NatsLogin::None,
            (Some(name), Some(password_file), None, None) => NatsLogin::User { name, password_file },
            (None, None, Some(file), None) => NatsLogin::Token(file),
            (None, None, None, Some(file)) => NatsLogin::Credentials(file),
            (Some(_), None, None, None) => {
                return wrong("user", "has no password; add password_file");
            }
            (None, Some(_), None, None) => {
                return wrong("password_file", "is of nobody; add user");
            }
            _ => {
                return wrong(
                    "credentials_file",
                    "there is more than one login; keep one of user with password_file, token_file and credentials_file",
                );
            }
        };
        Ok(Nats {
            servers: self.servers,
            login,
            ca_file: self.ca_file,
            jobs_bucket: self.jobs_bucket,
            usage_bucket: self.usage_bucket,
            stream: self.stream,
            replicas: self.replicas,
            queue: self.queue,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validated(text: &str) -> Result<Option<Nats>, String> {
        let config: HistoryConfig = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        config.validate().map_err(|error| error.to_string())
    }

    #[test]
    fn only_a_server_is_required() {
        let nats = validated("nats: {servers: ['nats://nats']}").unwrap().unwrap();
        assert_eq!((nats.login, nats.replicas), (NatsLogin::None, 1));
        assert_eq!(nats.jobs_bucket.as_str(), "wasmspawner-jobs");
        assert!(validated("{}").unwrap().is_none());
    }

    #[test]
    fn each_login_has_its_file() {
        let login = |more: &str| {
            let nats = validated(&format!("nats: {{servers: ['tls://[::1]:4222'], {more}}}"));
            nats.map(|nats| nats.unwrap().login)
        };
        let user = NatsLogin::User { name: "a".to_owned(), password_file: "/p".into() };
        assert_eq!(login("user: a, password_file: /p"), Ok(user));
        assert_eq!(login("token_file: /t"), Ok(NatsLogin::Token("/t".into())));
        assert_eq!(login("credentials_file: /c"), Ok(NatsLogin::Credentials("/c".into())));
        for (more, expected) in [
            ("user: a", "history.nats.user: has no password"),
            ("password_file: /p", "history.nats.password_file: is of nobody"),
            (
                "token_file: /t, credentials_file: /c",
                "history.nats.credentials_file: there is more than one login",
            ),
        ] {
            assert!(login(more).unwrap_err().starts_with(expected), "{more}");
        }
    }

    #[test]
    fn a_setting_that_cannot_work_is_refused() {
        for (nats, expected) in [
            ("servers: []", "history.nats.servers: is empty"),
            ("servers: ['nats://n'], replicas: 6", "history.nats.replicas: is 6"),
            ("servers: ['nats://n'], queue: 0", "history.nats.queue: is 0"),
            (
                "servers: ['nats://n'], usage_bucket: wasmspawner-jobs",
                "history.nats.usage_bucket: is the name",
            ),
            ("servers: ['nats://n'], stream: a.b", "is not a name of a stream"),
            ("servers: ['http://n']", "is not the address of a NATS server"),
        ] {
            let error = validated(&format!("nats: {{{nats}}}")).unwrap_err();
            assert!(error.contains(expected), "{nats}: {error}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_refused_and_not_repeated() {
        let error = NatsServer::try_from("nats://ada:s3cret@nats".to_owned()).unwrap_err();
        assert!(error.contains("password_file") && !error.contains("s3cret"), "{error}");
    }
}
