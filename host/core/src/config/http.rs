//! `http`: where the service listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InvalidSetting;

/// Where the service listens, and what it accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HttpConfig {
    /// Address and port of the REST API.
    pub listen: SocketAddr,
    /// Address and port of `/healthz`, `/readyz` and `/metrics`, which need no credential.
    pub health_listen: SocketAddr,
    /// Path prefix of the REST API.
    pub prefix: String,
    /// Largest accepted body in bytes.
    pub max_body_bytes: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        let any = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
        Self {
            listen: any(8090),
            health_listen: any(8091),
            prefix: "/spawner/v1".to_owned(),
            max_body_bytes: 1 << 20,
        }
    }
}

impl HttpConfig {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        let sound =
            self.prefix.starts_with('/') && !self.prefix.ends_with('/') && !self.prefix.contains("//");
        if sound && self.prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte)) {
            return Ok(());
        }
        Err(InvalidSetting::new(
            "http.prefix",
            format!(
                "`{}` is not a valid path; write something like `/spawner/v1`, with no `/` at the end",
                self.prefix
            ),
        ))
    }
}
