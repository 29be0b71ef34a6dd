//! `hub`: how the service itself calls JupyterHub.

use std::path::PathBuf;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth::{AuthConfig, AuthMode};
use super::{BaseUrl, InvalidSetting, check_span};
use crate::lifecycle::forgotten::ForgottenRules;

/// How the service itself calls JupyterHub. Without this section the service does not look for forgotten labs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HubConfig {
    /// The Hub's API: `http://hub:8081/hub/api`. Default: `auth.jupyterhub.api_url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<BaseUrl>,
    /// A file with the token that the service presents to the Hub. The token needs the scopes `list:users` and
    /// `read:servers`, and where callers are authenticated by the Hub `read:users:groups` (`admin:auth_state`, too, where
    /// the Hub stores UIDs there). Only the file's owner may have access to it (mode 0600). The service reads it again for each
    /// check.
    pub token_file: PathBuf,
    /// How long the Hub may take to answer; at most a minute.
    #[serde(default = "default_timeout")]
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub timeout: SignedDuration,
    /// What happens to labs that the Hub no longer knows.
    #[serde(default)]
    pub forgotten: ForgottenConfig,
}

/// Labs that the Hub no longer knows, because its database was restored or it was installed anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ForgottenConfig {
    /// The time between two comparisons of the labs with the Hub's list of servers.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub check_every: SignedDuration,
    /// A younger lab never counts as forgotten.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub min_age: SignedDuration,
    /// A lab is stopped after every check for this long has found it forgotten. Time in which the Hub does not answer
    /// does not count, and a restart of the service starts the count again. `null`: such labs are never stopped.
    #[schemars(with = "Option<String>")]
    #[serde(deserialize_with = "crate::config::span::parse_optional")]
    pub stop_after: Option<SignedDuration>,
    /// No lab is stopped while more than this percentage of the labs looks forgotten. Does not apply below ten labs.
    #[schemars(range(min = 1, max = 100))]
    pub max_percent: u8,
}

/// The validated section `hub`.
#[derive(Debug, Clone)]
pub struct Hub {
    /// The Hub's API.
    pub api_url: BaseUrl,
    /// The file with the service's token.
    pub token_file: PathBuf,
    /// How long the Hub may take to answer.
    pub timeout: SignedDuration,
    /// When a lab counts as forgotten.
    pub forgotten: ForgottenRules,
}

impl Default for ForgottenConfig {
    fn default() -> Self {
        Self {
            check_every: SignedDuration::from_mins(10),
            min_age: SignedDuration::from_mins(15),
            stop_after: None,
            max_percent: 50,
        }
    }
}

impl HubConfig {
    /// Takes the URL from `auth` when the section has none, and checks the rest.
    pub(super) fn validate(self, auth: Option<&AuthConfig>) -> Result<Hub, InvalidSetting> {
        let day = SignedDuration::from_hours(24);
        let ForgottenConfig { check_every, min_age, stop_after, max_percent } = self.forgotten;
        check_span("hub.timeout", self.timeout, SignedDuration::from_mins(1))?;
        check_span("hub.forgotten.check_every", check_every, day)?;
        check_span("hub.forgotten.min_age", min_age, day)?;
        if let Some(stop_after) = stop_after {
            check_span("hub.forgotten.stop_after", stop_after, day * 366)?;
            if stop_after < check_every {
                let problem = format!(
                    "{stop_after:#} is shorter than hub.forgotten.check_every ({check_every:#}), so that one look would \
                     be enough; make it longer"
                );
                return Err(InvalidSetting::new("hub.forgotten.stop_after", problem));
            }
        }
        if !(1..=100).contains(&max_percent) {
            let problem = format!("{max_percent} is out of range; write a percentage from 1 to 100");
            return Err(InvalidSetting::new("hub.forgotten.max_percent", problem));
        }
        let of_auth = || {
            let auth = auth.filter(|auth| auth.modes.contains(&AuthMode::Jupyterhub))?;
            auth.jupyterhub.as_ref().map(|jupyterhub| jupyterhub.api_url.clone())
        };
        let api_url = self.api_url.or_else(of_auth).ok_or_else(|| {
            InvalidSetting::new(
                "hub.api_url",
                "missing; write the URL of the Hub's API: http://hub:8081/hub/api",
            )
        })?;
        let forgotten = ForgottenRules { min_age, stop_after, max_percent, check_every };
        Ok(Hub { api_url, token_file: self.token_file, timeout: self.timeout, forgotten })
    }
}

fn default_timeout() -> SignedDuration {
    SignedDuration::from_secs(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validated(hub: &str, auth: &str) -> Result<Hub, String> {
        let hub: HubConfig = serde_saphyr::from_str(hub).map_err(|error| format!("{error}"))?;
        let auth: AuthConfig = serde_saphyr::from_str(auth).unwrap();
        hub.validate(Some(&auth)).map_err(|error| error.to_string())
    }

    const STATIC: &str = "{modes: [static], static: {tokens_file: /t}}";

    #[test]
    fn the_api_url_defaults_to_that_of_auth() {
        let auth = "{modes: [jupyterhub], jupyterhub: {api_url: 'http://hub/hub/api'}}";
        let hub = validated("token_file: /t", auth).unwrap();
        assert_eq!((hub.api_url.as_str(), hub.forgotten.stop_after), ("http://hub/hub/api", None));
        let hub = validated("{token_file: /t, api_url: 'http://other'}", auth).unwrap();
        assert_eq!(hub.api_url.as_str(), "http://other");
    }

    #[test]
    fn an_error_names_the_wrong_key() {
        for (hub, expected) in [
            ("token_file: /t", "hub.api_url: missing"),
            ("api_url: http://h", "token_file"),
            ("{token_file: /t, api_url: 'http://h', timeout: 2m}", "hub.timeout: "),
            (
                "{token_file: /t, api_url: 'http://h', forgotten: {stop_after: 5m}}",
                "hub.forgotten.stop_after: 5m is shorter than hub.forgotten.check_every",
            ),
            (
                "{token_file: /t, api_url: 'http://h', forgotten: {max_percent: 0}}",
                "hub.forgotten.max_percent: 0 is out of range",
            ),
            ("{token_file: /t, api_url: 'http://h', forgotten: {min_age: 0s}}", "hub.forgotten.min_age: "),
        ] {
            let error = validated(hub, STATIC).unwrap_err();
            assert!(error.contains(expected), "{hub}: {error}");
        }
        let as_often =
            "{token_file: /t, api_url: 'http://h', forgotten: {check_every: 10m, stop_after: 10m}}";
        assert!(validated(as_often, STATIC).is_ok());
    }
}
