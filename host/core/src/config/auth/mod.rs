//! `auth`: how callers are authenticated, and the UIDs and GIDs of users that are configured here.

mod headers;
mod identities;
mod jupyterhub;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use headers::{HeadersAuth, IngressHeader};
pub use identities::{Identities, IdentityEntry};
pub use jupyterhub::JupyterHubAuth;

use super::{InvalidSetting, check_span};

/// The section `auth` as it is written in the file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthConfig {
    /// How callers are authenticated. The section of the same name holds the settings of that mode.
    pub mode: AuthMode,
    /// For `mode: static`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#static: Option<StaticAuth>,
    /// For `mode: jupyterhub`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jupyterhub: Option<JupyterHubAuth>,
    /// For `mode: headers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<HeadersAuth>,
    /// UIDs, GIDs and groups of users for whom the mode provides none.
    #[serde(default)]
    pub identities: Identities,
}

/// How callers are authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Tokens listed in a file. For a single machine and for tests.
    Static,
    /// JupyterHub's tokens, checked at the Hub.
    Jupyterhub,
    /// Headers set by a trusted ingress (Gafaelfawr).
    Headers,
}

/// `auth.static`: tokens listed in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticAuth {
    /// A YAML list of `sha256`, `user`, `scopes` and optionally `uid`, `gid`, `groups`. Only its owner may have access
    /// to the file (mode 0600). The service reads it again when it changes.
    pub tokens_file: PathBuf,
}

/// The validated section `auth`.
#[derive(Debug, Clone)]
pub struct Auth {
    /// How callers are authenticated.
    pub method: AuthMethod,
    /// UIDs, GIDs and groups of users for whom the method provides none.
    pub identities: Identities,
}

/// The chosen mode with its settings.
#[derive(Debug, Clone)]
pub enum AuthMethod {
    /// Tokens listed in a file.
    Static(StaticAuth),
    /// JupyterHub's tokens.
    JupyterHub(JupyterHubAuth),
    /// Headers set by a trusted ingress.
    Headers(HeadersAuth),
}

impl AuthConfig {
    /// Takes the section of the chosen mode and checks it.
    pub fn validate(self) -> Result<Auth, InvalidSetting> {
        let method = match self.mode {
            AuthMode::Static => AuthMethod::Static(required(self.r#static, "static", "tokens_file")?),
            AuthMode::Jupyterhub => {
                let jupyterhub = required(self.jupyterhub, "jupyterhub", "api_url")?;
                jupyterhub.check()?;
                AuthMethod::JupyterHub(jupyterhub)
            }
            AuthMode::Headers => {
                let headers = required(self.headers, "headers", "url and trusted_peers")?;
                headers.check()?;
                AuthMethod::Headers(headers)
            }
        };
        Ok(Auth { method, identities: self.identities })
    }
}

fn required<T>(section: Option<T>, name: &str, needs: &str) -> Result<T, InvalidSetting> {
    section.ok_or_else(|| {
        let problem = format!("missing; auth.mode is {name}, which needs this section with {needs}");
        InvalidSetting::new(format!("auth.{name}"), problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validated(yaml: &str) -> Result<Auth, String> {
        serde_saphyr::from_str::<AuthConfig>(yaml)
            .map_err(|error| error.to_string())?
            .validate()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_mode_uses_the_section_of_its_name() {
        let file = validated("mode: static\nstatic: {tokens_file: /t}\n").unwrap();
        assert!(
            matches!(file.method, AuthMethod::Static(StaticAuth { tokens_file }) if tokens_file == *"/t")
        );
        let hub = validated("mode: jupyterhub\njupyterhub: {api_url: http://hub:8081/hub/api}\n").unwrap();
        assert!(matches!(hub.method, AuthMethod::JupyterHub(_)));
        let headers =
            validated("mode: headers\nheaders: {url: https://x, trusted_peers: [10.0.0.0/8]}\n").unwrap();
        assert!(matches!(headers.method, AuthMethod::Headers(_)));
    }

    #[test]
    fn an_error_names_the_wrong_key() {
        for (yaml, expected) in [
            ("mode: jupyterhub\n", "auth.jupyterhub: missing; auth.mode is jupyterhub"),
            ("mode: jupyterhub\njupyterhub: {api_url: nowhere}\n", "\"nowhere\" is not a base URL"),
            (
                "mode: jupyterhub\njupyterhub: {api_url: http://h, timeout: 0s}\n",
                "auth.jupyterhub.timeout: 0s is out of range",
            ),
            (
                "mode: headers\nheaders: {url: https://x, trusted_peers: []}\n",
                "auth.headers.trusted_peers: is empty",
            ),
            ("mode: magic\n", "magic"),
            ("mode: static\nstatic: {tokens_file: /t}\ntokens: 1\n", "tokens"),
        ] {
            let error = validated(yaml).unwrap_err();
            assert!(error.contains(expected), "{yaml}: {error}");
        }
    }
}
