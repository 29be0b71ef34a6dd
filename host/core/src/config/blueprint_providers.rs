//! `blueprints.providers`: where the blueprints of repositories and of users are read.

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InvalidSetting;
use crate::values::percent::percent_encoded;

/// Where the blueprints of repositories and of users are read: at URLs of one host each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProvidersConfig {
    /// The file of a repository that a user names: `https://git.example.org/{repo}/raw/main/.wasmspawner.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<ProviderConfig>,
    /// A user's own blueprint, where the site has none of the name: `https://people.example.org/{username}/{blueprint}.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<ProviderConfig>,
    /// How long an answer may take; 1s to 1m.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub timeout: SignedDuration,
}

/// One provider of blueprints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The URL of a blueprint. Its path or query may contain `{username}`, `{repo}` and `{blueprint}`, whose values are
    /// percent-encoded. It begins with `https://`; `http://` is allowed on this machine.
    pub url: String,
    /// Whether the token with which the user has asked for the lab is sent along, as a bearer token.
    #[serde(default)]
    pub send_token: bool,
}

impl Default for ProvidersConfig {
    fn default() -> Self {
        Self { repository: None, user: None, timeout: SignedDuration::from_secs(5) }
    }
}

/// The values of the fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProviderFields<'a> {
    /// The lab's user.
    pub username: &'a str,
    /// The repository; its slashes stay.
    pub repo: &'a str,
    /// The blueprint.
    pub blueprint: &'a str,
}

impl ProviderConfig {
    /// The URL for these values.
    pub fn url(&self, fields: ProviderFields<'_>) -> String {
        let values = [
            ("{username}", percent_encoded(fields.username, b"")),
            ("{repo}", percent_encoded(fields.repo, b"/")),
            ("{blueprint}", percent_encoded(fields.blueprint, b"")),
        ];
        let (mut url, mut rest) = (String::new(), self.url.as_str());
        // The values are not looked through again.
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            url.push_str(before);
            let known = values.iter().find(|(field, _)| from.starts_with(field));
            let (field, value) = known.map_or(("{", "{"), |(field, value)| (*field, value.as_str()));
            url.push_str(value);
            rest = &from[field.len()..];
        }
        url + rest
    }

    fn check(&self, key: &str, fields: &[&str]) -> Option<InvalidSetting> {
        let wrong = |problem: &str| {
            Some(InvalidSetting::new(format!("{key}.url"), format!("{:?} {problem}", self.url)))
        };
        let rest = self.url.strip_prefix("https://").or_else(|| {
            let rest = self.url.strip_prefix("http://")?;
            let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
            matches!(host, "127.0.0.1" | "localhost").then_some(rest)
        });
        let Some(rest) = rest else {
            return wrong(
                "is no URL of a provider; it begins with https://, or with http://127.0.0.1 on this machine",
            );
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() || host.contains(['{', '}', '@', '?', '#']) {
            return wrong("has a field or credentials before the path; every blueprint is of the same host");
        }
        let unknown = path
            .split('{')
            .skip(1)
            .find(|part| !fields.iter().any(|field| part.starts_with(&format!("{field}}}"))));
        if let Some(unknown) = unknown {
            return wrong(&format!(
                "has the unknown field {{{unknown}; there are {{{}}}",
                fields.join("}, {")
            ));
        }
        None
    }
}

impl ProvidersConfig {
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.repository.is_none() && self.user.is_none()
    }

    pub(super) fn check(&self) -> Vec<InvalidSetting> {
        let key = |name: &str| format!("blueprints.providers.{name}");
        let of_repository =
            self.repository.as_ref().and_then(|one| one.check(&key("repository"), &["username", "repo"]));
        let of_user = self.user.as_ref().and_then(|one| one.check(&key("user"), &["username", "blueprint"]));
        let limits = SignedDuration::from_secs(1)..=SignedDuration::from_mins(1);
        let timeout = (!limits.contains(&self.timeout))
            .then(|| InvalidSetting::new(key("timeout"), "must be 1s to 1m"));
        of_repository.into_iter().chain(of_user).chain(timeout).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(url: &str) -> ProviderConfig {
        ProviderConfig { url: url.to_owned(), send_token: false }
    }

    #[test]
    fn values_cannot_leave_their_place_in_the_url() {
        let fields = ProviderFields { username: "a/../{repo}?x#y é", repo: "org/project", blueprint: "gpu" };
        assert_eq!(
            provider("https://h/{username}/{repo}/{blueprint}.yaml?{x}").url(fields),
            "https://h/a%2F..%2F%7Brepo%7D%3Fx%23y%20%C3%A9/org/project/gpu.yaml?{x}"
        );
    }

    #[test]
    fn a_provider_is_one_host_with_encryption() {
        let check = |url: &str| {
            let found = provider(url).check("p", &["username", "repo"]);
            found.map(|found| found.to_string()).unwrap_or_default()
        };
        for good in [
            "https://git.example.org/{repo}/raw/x.yaml",
            "http://127.0.0.1:1/{repo}",
            "https://h:1/?r={repo}",
        ] {
            assert_eq!(check(good), "");
        }
        for (bad, problem) in [
            ("http://git.example.org/{repo}", "begins with https://"),
            ("ftp://x", "begins with https://"),
            ("https://{username}.example.org/x", "before the path"),
            ("https://user:secret@example.org/x", "before the path"),
            ("https://h/{blueprint}", "unknown field {blueprint}; there are {username}, {repo}"),
            ("http://127.0.0.1.example.org/{repo}", "begins with https://"),
        ] {
            assert!(check(bad).contains(problem), "{bad}: {}", check(bad));
        }
    }
}
