//! `auth`: how callers are authenticated, and the UIDs and GIDs of users that are configured here.

mod claim_name;
mod headers;
mod identities;
mod issuer;
mod jupyterhub;
mod oidc;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use claim_name::ClaimName;
pub use headers::{HeadersAuth, IngressHeader, IngressProof, SharedSecret};
pub use identities::{Identities, IdentityEntry, Incomplete};
pub use issuer::{Issuer, KeySetUrl};
pub use jupyterhub::JupyterHubAuth;
pub use oidc::OidcAuth;

use super::{InvalidSetting, PeerRange, check_span};

/// The section `auth` as it is written in the file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthConfig {
    /// How callers are authenticated: one or more modes, in the order in which they are tried. The section of the same
    /// name holds the settings of a mode. `static` and `oidc` come before `jupyterhub`, so that the Hub never sees their
    /// tokens.
    #[schemars(length(min = 1))]
    pub modes: Vec<AuthMode>,
    /// For the mode `static`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#static: Option<StaticAuth>,
    /// For the mode `jupyterhub`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jupyterhub: Option<JupyterHubAuth>,
    /// For the mode `headers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<HeadersAuth>,
    /// For the mode `oidc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<OidcAuth>,
    /// UIDs, GIDs and groups of users for whom no mode provides them.
    #[serde(default)]
    pub identities: Identities,
}

/// How callers are authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Tokens listed in a file. For the command line, a single machine and tests.
    Static,
    /// JupyterHub's tokens, checked at the Hub.
    Jupyterhub,
    /// Headers set by a trusted ingress (Gafaelfawr).
    Headers,
    /// Access tokens of an OpenID Connect provider, checked with its keys.
    Oidc,
}

/// `auth.static`: tokens listed in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticAuth {
    /// A YAML list of `sha256`, `user`, `scopes` and optionally `expires`, `uid`, `gid`, `groups`. Only its owner may
    /// have access to the file (mode 0600). The service reads it again when it changes.
    pub tokens_file: PathBuf,
}

/// The validated section `auth`.
#[derive(Debug, Clone)]
pub struct Auth {
    /// How callers are authenticated, in the order in which the methods are tried.
    pub methods: Vec<AuthMethod>,
    /// UIDs, GIDs and groups of users for whom no method provides them.
    pub identities: Identities,
}

impl Auth {
    /// The addresses of the ingress that authenticates callers; none without the mode `headers`.
    pub fn trusted_peers(&self) -> &[PeerRange] {
        let headers = self.methods.iter().find_map(|method| match method {
            AuthMethod::Headers(headers) => Some(headers.trusted_peers.as_slice()),
            AuthMethod::Static(_) | AuthMethod::JupyterHub(_) | AuthMethod::Oidc(_) => None,
        });
        headers.unwrap_or_default()
    }
}

/// A mode with its settings.
#[derive(Debug, Clone)]
pub enum AuthMethod {
    /// Tokens listed in a file.
    Static(StaticAuth),
    /// JupyterHub's tokens.
    JupyterHub(JupyterHubAuth),
    /// Headers set by a trusted ingress.
    Headers(HeadersAuth),
    /// Access tokens of an OpenID Connect provider.
    Oidc(OidcAuth),
}

impl AuthMode {
    /// The mode as it is written in the file; also the name of its section.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Jupyterhub => "jupyterhub",
            Self::Headers => "headers",
            Self::Oidc => "oidc",
        }
    }
}

impl AuthConfig {
    /// Takes the sections of the chosen modes and checks them.
    pub fn validate(mut self) -> Result<Auth, InvalidSetting> {
        self.check_order()?;
        let modes = std::mem::take(&mut self.modes);
        let methods = modes.into_iter().map(|mode| self.take(mode)).collect::<Result<_, _>>()?;
        let unused = [
            self.r#static.is_some().then_some(AuthMode::Static),
            self.jupyterhub.is_some().then_some(AuthMode::Jupyterhub),
            self.headers.is_some().then_some(AuthMode::Headers),
            self.oidc.is_some().then_some(AuthMode::Oidc),
        ];
        if let Some(mode) = unused.into_iter().flatten().next() {
            let problem = "is set but not used; add the mode to auth.modes, or remove this section";
            return Err(InvalidSetting::new(format!("auth.{}", mode.as_str()), problem));
        }
        Ok(Auth { methods, identities: self.identities })
    }

    fn check_order(&self) -> Result<(), InvalidSetting> {
        let invalid = |problem: String| Err(InvalidSetting::new("auth.modes", problem));
        if self.modes.is_empty() {
            return invalid(
                "is empty, so every request would be refused; list static, jupyterhub, headers or oidc"
                    .into(),
            );
        }
        if let Some((at, mode)) =
            self.modes.iter().enumerate().find(|(at, mode)| self.modes[..*at].contains(mode))
        {
            return invalid(format!("{} is listed twice; remove entry {}", mode.as_str(), at + 1));
        }
        let mut after_hub = self.modes.iter().skip_while(|mode| **mode != AuthMode::Jupyterhub);
        match after_hub
            .find(|mode| matches!(mode, AuthMode::Static | AuthMode::Oidc))
            .map(|mode| mode.as_str())
        {
            Some(mode) => invalid(format!(
                "jupyterhub comes before {mode}, so the Hub would see every token of the mode {mode}; put {mode} first"
            )),
            None => Ok(()),
        }
    }

    fn take(&mut self, mode: AuthMode) -> Result<AuthMethod, InvalidSetting> {
        Ok(match mode {
            AuthMode::Static => AuthMethod::Static(required(self.r#static.take(), mode, "tokens_file")?),
            AuthMode::Jupyterhub => {
                let jupyterhub = required(self.jupyterhub.take(), mode, "api_url")?;
                jupyterhub.check()?;
                AuthMethod::JupyterHub(jupyterhub)
            }
            AuthMode::Headers => {
                let headers = required(self.headers.take(), mode, "url and trusted_peers")?;
                headers.check()?;
                AuthMethod::Headers(headers)
            }
            AuthMode::Oidc => {
                let oidc = required(self.oidc.take(), mode, "issuer and audience")?;
                oidc.check()?;
                AuthMethod::Oidc(oidc)
            }
        })
    }
}

fn required<T>(section: Option<T>, mode: AuthMode, needs: &str) -> Result<T, InvalidSetting> {
    let name = mode.as_str();
    section.ok_or_else(|| {
        let problem = format!("missing; auth.modes has {name}, which needs this section with {needs}");
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
        let file = validated("modes: [static]\nstatic: {tokens_file: /t}\n").unwrap();
        assert!(
            matches!(&file.methods[..], [AuthMethod::Static(StaticAuth { tokens_file })] if tokens_file == "/t")
        );
        let hub = validated("modes: [jupyterhub]\njupyterhub: {api_url: http://hub:8081/hub/api}\n").unwrap();
        assert!(matches!(hub.methods[..], [AuthMethod::JupyterHub(_)]));
        let headers =
            validated("modes: [headers]\nheaders: {url: https://x, trusted_peers: [10.0.0.0/8]}\n").unwrap();
        assert!(matches!(headers.methods[..], [AuthMethod::Headers(_)]));
        let oidc = validated("modes: [oidc]\noidc: {issuer: https://x, audience: y}\n").unwrap();
        assert!(matches!(oidc.methods[..], [AuthMethod::Oidc(_)]));
    }

    #[test]
    fn a_delegated_token_is_asked_of_the_ingress_unless_another_proof_is_chosen() {
        for (yaml, expected) in [
            ("", IngressProof::DelegatedToken),
            (
                ", proof: {shared-secret: {file: /s}}",
                IngressProof::SharedSecret(SharedSecret { file: "/s".into() }),
            ),
            (", proof: bare-user-header", IngressProof::BareUserHeader),
        ] {
            let yaml = format!("{{url: https://x, trusted_peers: [192.0.2.7]{yaml}}}");
            assert_eq!(serde_saphyr::from_str::<HeadersAuth>(&yaml).unwrap().proof, expected, "{yaml}");
        }
    }

    #[test]
    fn several_modes_keep_their_order() {
        let both =
            "modes: [static, jupyterhub]\nstatic: {tokens_file: /t}\njupyterhub: {api_url: http://h}\n";
        let auth = validated(both).unwrap();
        assert!(matches!(auth.methods[..], [AuthMethod::Static(_), AuthMethod::JupyterHub(_)]));
    }

    #[test]
    fn an_error_names_the_wrong_key() {
        for (yaml, expected) in [
            ("modes: [jupyterhub]\n", "auth.jupyterhub: missing; auth.modes has jupyterhub"),
            ("modes: [jupyterhub]\njupyterhub: {api_url: nowhere}\n", "\"nowhere\" is not a base URL"),
            (
                "modes: [jupyterhub]\njupyterhub: {api_url: http://h, timeout: 0s}\n",
                "auth.jupyterhub.timeout: 0s is out of range",
            ),
            (
                "modes: [headers]\nheaders: {url: https://x, trusted_peers: []}\n",
                "auth.headers.trusted_peers: is empty",
            ),
            ("modes: [magic]\n", "magic"),
            ("mode: static\nstatic: {tokens_file: /t}\n", "modes"),
            ("modes: []\n", "auth.modes: is empty"),
            ("modes: [static, static]\nstatic: {tokens_file: /t}\n", "auth.modes: static is listed twice"),
            (
                "modes: [jupyterhub, static]\nstatic: {tokens_file: /t}\njupyterhub: {api_url: http://h}\n",
                "auth.modes: jupyterhub comes before static",
            ),
            (
                "modes: [jupyterhub, oidc]\noidc: {issuer: https://x, audience: y}\njupyterhub: {api_url: http://h}\n",
                "auth.modes: jupyterhub comes before oidc",
            ),
            ("modes: [oidc]\n", "auth.oidc: missing; auth.modes has oidc"),
            ("modes: [oidc]\noidc: {issuer: https://x}\n", "audience"),
            ("modes: [oidc]\noidc: {issuer: sso, audience: y}\n", "\"sso\" is not a base URL"),
            (
                "modes: [oidc]\noidc: {issuer: https://x, audience: y, leeway: 1h}\n",
                "auth.oidc.leeway: is out of",
            ),
            (
                "modes: [static]\nstatic: {tokens_file: /t}\njupyterhub: {api_url: http://h}\n",
                "auth.jupyterhub: is set but not used",
            ),
            ("modes: [static]\nstatic: {tokens_file: /t}\ntokens: 1\n", "tokens"),
        ] {
            let error = validated(yaml).unwrap_err();
            assert!(error.contains(expected), "{yaml}: {error}");
        }
    }
}
