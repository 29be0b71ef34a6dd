//! The file with credentials, in the format of `docker login`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::error::{RegistryError, Setting};
use wasmspawner_files::secret_file;

/// The name of Docker's own registry in this file.
const DOCKER_HUB: &str = "index.docker.io";

/// The credentials for all registries.
#[derive(Deserialize)]
pub(super) struct Credentials {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

/// A login in the file.
#[derive(Deserialize)]
struct Entry {
    username: Option<String>,
    password: Option<String>,
    /// `username:password` in base64.
    auth: Option<String>,
}

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    user: String,
    password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    /// Returns the value of the header `Authorization` for HTTP basic authentication.
    pub(super) fn basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", self.user, self.password)))
    }
}

impl Credentials {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, RegistryError> {
        let wrong = |problem: String| RegistryError::File {
            setting: Setting::CredentialsFile,
            path: path.to_owned(),
            problem,
        };
        let metadata = path.metadata().map_err(|error| wrong(error.to_string()))?;
        if let Some(mode) = secret_file::exposed_mode(&metadata) {
            return Err(wrong(format!("others than its owner have access to it (mode {mode:o}); use 0600")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text).ok_or_else(|| {
            wrong("is not a configuration of Docker with logins, `{\"auths\": {...}}`".to_owned())
        })
    }

    /// Parses the file. Returns no error, because an error would quote the file.
    fn parse(text: &str) -> Option<Self> {
        let credentials: Self = serde_json::from_str(text).ok()?;
        let readable = |entry: &Entry| entry.auth.is_none() || entry.login().is_some();
        credentials.auths.values().all(readable).then_some(credentials)
    }

    /// Returns the login for a repository. A key matches if it is the registry, or the registry with the beginning of
    /// the repository's path. The longest matching key wins. Tokens (`identitytoken`) and programs (`credHelpers`) are
    /// not supported.
    pub(super) fn login(&self, registry: &str, repository: &str) -> Option<Login> {
        let whole = format!("{}/{repository}", canonical(registry));
        let found = self
            .auths
            .iter()
            .map(|(key, entry)| (scope(key), entry))
            .filter(|(scope, _)| whole.strip_prefix(scope.as_str()).is_some_and(|rest| rest.starts_with('/')))
            .max_by_key(|(scope, _)| scope.len());
        found.and_then(|(_, entry)| entry.login())
    }
}

impl Entry {
    fn login(&self) -> Option<Login> {
        if let (Some(user), Some(password)) = (&self.username, &self.password) {
            return Some(Login { user: user.clone(), password: password.clone() });
        }
        let bytes = STANDARD.decode(self.auth.as_ref()?.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (user, password) = text.split_once(':')?;
        Some(Login { user: user.to_owned(), password: password.to_owned() })
    }
}

/// Returns the registry of a key, with the beginning of a path if the key has one. Keys may be URLs with the path of
/// Docker's own API.
fn scope(key: &str) -> String {
    let key = key.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('/');
    let (host, path) = key.split_once('/').unwrap_or((key, ""));
    match path {
        "" | "v1" | "v2" => canonical(host).to_owned(),
        path => format!("{}/{path}", canonical(host)),
    }
}

fn canonical(registry: &str) -> &str {
    if matches!(registry, "docker.io" | "registry-1.docker.io") { DOCKER_HUB } else { registry }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(file: &str, registry: &str, repository: &str) -> String {
        let login = Credentials::parse(file).unwrap().login(registry, repository);
        login.map(|login| login.user).unwrap_or_default()
    }

    #[test]
    fn the_login_with_the_longest_fitting_name_is_used() {
        let login = |user: &str| format!(r#"{{"username": "{user}", "password": "p"}}"#);
        let file = format!(
            r#"{{"auths": {{"https://index.docker.io/v1/": {}, "quay.io": {}, "quay.io/org": {}, "localhost:5000": {}}}}}"#,
            login("docker"),
            login("quay"),
            login("org"),
            login("local"),
        );
        for (registry, repository, expected) in [
            ("docker.io", "library/debian", "docker"),
            ("index.docker.io", "library/debian", "docker"),
            ("quay.io", "other/image", "quay"),
            ("quay.io", "org/image", "org"),
            ("quay.io", "organisation/image", "quay"),
            ("localhost:5000", "image", "local"),
            ("localhost:5001", "image", ""),
            ("ghcr.io", "org/image", ""),
            ("quay.io.example.org", "org/image", ""),
        ] {
            assert_eq!(user(&file, registry, repository), expected, "{registry}/{repository}");
        }
    }

    #[test]
    fn a_login_may_be_encoded() {
        let encoded = STANDARD.encode("ada:pass:word");
        let file =
            format!(r#"{{"auths": {{"quay.io": {{"auth": "{encoded}"}}}}, "credsStore": "secretservice"}}"#);
        let Login { user, password } = Credentials::parse(&file).unwrap().login("quay.io", "x").unwrap();
        assert_eq!((user.as_str(), password.as_str()), ("ada", "pass:word"));
    }

    #[test]
    fn what_is_no_file_of_logins_is_refused() {
        for text in ["", "null", r#"{"auths": []}"#, r#"{"auths": {"quay.io": {"auth": "%"}}}"#] {
            assert!(Credentials::parse(text).is_none(), "{text}");
        }
        assert!(Credentials::parse("{}").is_some(), "no logins");
    }
}
