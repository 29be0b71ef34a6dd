//! `http`: where the service listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BaseUrl, InvalidSetting, PeerRange};

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
    /// Further APIs, for clients that exist already. `nublado`: that of the controller of Nublado 15, for its spawner class
    /// of JupyterHub.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dialects: Vec<Dialect>,
    /// Path prefix of the dialect `nublado`: the `pathPrefix` of its controller. The routes are below `/spawner/v1` there.
    pub nublado_prefix: String,
    /// Largest accepted body in bytes.
    pub max_body_bytes: usize,
    /// Most connections to the REST API at any one time. Further ones wait until others end. Half of them are for those
    /// who have shown a valid credential.
    #[schemars(range(min = 1))]
    pub max_connections: usize,
    /// Most connections of one address, or of one /64 network with IPv6. Further ones are closed at once. Default: a
    /// fifth of `max_connections`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections_per_address: Option<NonZeroU32>,
    /// Addresses of ingresses and other proxies, for whose connections `max_connections_per_address` does not hold,
    /// because many people are behind them: `[10.1.2.3, 10.2.0.0/16]`. Those of `auth.headers.trusted_peers` are among
    /// them without being listed here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<PeerRange>,
    /// URL under which labs reach this service, without the prefix: `http://wasmspawner.wasmspawner:8090`. Labs start
    /// kernels and Dask pools through it. Default: none, so that labs start neither; on the one-machine cluster the
    /// address at which the service listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labs_url: Option<BaseUrl>,
    /// The REST API's certificate. Without it, the API is served without TLS, and tokens travel readably.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
}

/// An API of another program that the service serves, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// The API of the controller of Nublado 15.
    Nublado,
}

/// The certificate of the REST API, as PEM files. Changed files are used within ten seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate and, after it, those of intermediate authorities.
    pub cert: PathBuf,
    /// The certificate's private key (PKCS #8, PKCS #1 or SEC 1).
    pub key: PathBuf,
}

impl Default for HttpConfig {
    fn default() -> Self {
        let any = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
        Self {
            listen: any(8090),
            health_listen: any(8091),
            prefix: "/spawner/v1".to_owned(),
            dialects: Vec::new(),
            nublado_prefix: "/nublado".to_owned(),
            max_body_bytes: 1 << 20,
            max_connections: 10_000,
            max_connections_per_address: None,
            proxies: Vec::new(),
            labs_url: None,
            tls: None,
        }
    }
}

impl HttpConfig {
    /// The URL of the API for labs, with the prefix; `None` if they do not reach it. The pods of the one-machine cluster
    /// are processes of the machine on which the service listens.
    pub fn url_for_labs(&self, one_machine: bool) -> Option<String> {
        let listens = || {
            let ip = if self.listen.ip().is_unspecified() {
                IpAddr::V4(Ipv4Addr::LOCALHOST)
            } else {
                self.listen.ip()
            };
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            let address = SocketAddr::new(ip, self.listen.port());
            one_machine.then(|| format!("{scheme}://{address}"))
        };
        match &self.labs_url {
            Some(url) => Some(url.join(&self.prefix)),
            None => listens().map(|url| format!("{url}{}", self.prefix)),
        }
    }

    /// Most connections of one address at any one time.
    pub fn connections_per_address(&self) -> NonZeroU32 {
        let fifth = u32::try_from(self.max_connections / 5).unwrap_or(u32::MAX);
        self.max_connections_per_address.or(NonZeroU32::new(fifth)).unwrap_or(NonZeroU32::MIN)
    }

    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        if self.max_connections == 0 {
            let problem = "0 would let nobody connect; write a number of at least 1";
            return Err(InvalidSetting::new("http.max_connections", problem));
        }
        check_prefix("http.prefix", &self.prefix, "/spawner/v1")?;
        check_prefix("http.nublado_prefix", &self.nublado_prefix, "/nublado")?;
        if let Some((at, dialect)) =
            self.dialects.iter().enumerate().find(|(at, dialect)| self.dialects[..*at].contains(dialect))
        {
            let problem = format!("{dialect:?} is listed twice; remove entry {}", at + 1);
            return Err(InvalidSetting::new("http.dialects", problem.to_lowercase()));
        }
        let (own, nublado) = (format!("{}/", self.prefix), format!("{}/", self.nublado_prefix));
        if !self.dialects.is_empty() && (own.starts_with(&nublado) || nublado.starts_with(&own)) {
            let problem = format!(
                "`{}` and http.prefix, `{}`, overlap, so some paths would have two meanings; choose another prefix",
                self.nublado_prefix, self.prefix
            );
            return Err(InvalidSetting::new("http.nublado_prefix", problem));
        }
        Ok(())
    }
}

fn check_prefix(key: &str, prefix: &str, example: &str) -> Result<(), InvalidSetting> {
    let sound = prefix.starts_with('/') && !prefix.ends_with('/') && !prefix.contains("//");
    if sound && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte)) {
        return Ok(());
    }
    let problem =
        format!("`{prefix}` is not a valid path; write something like `{example}`, with no `/` at the end");
    Err(InvalidSetting::new(key, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_overlap_are_refused_only_where_both_are_served() {
        for (yaml, expected) in [
            ("dialects: [nublado]", None),
            ("prefix: /nublado", None),
            ("{dialects: [nublado], prefix: /nublado-2}", None),
            (
                "{dialects: [nublado], prefix: /nublado}",
                Some("http.nublado_prefix: `/nublado` and http.prefix"),
            ),
            ("{dialects: [nublado], prefix: /nublado/spawner/v1}", Some("overlap")),
            ("{dialects: [nublado], nublado_prefix: /spawner/v1/x}", Some("overlap")),
            ("{dialects: [nublado], nublado_prefix: nublado}", Some("http.nublado_prefix: `nublado` is not")),
            (
                "{dialects: [nublado, nublado]}",
                Some("http.dialects: nublado is listed twice; remove entry 2"),
            ),
        ] {
            let config: HttpConfig = serde_saphyr::from_str(yaml).unwrap();
            let error = config.check().err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{yaml}: {error:?}");
            let error = error.unwrap_or_default();
            assert!(error.contains(expected.unwrap_or_default()), "{yaml}: {error}");
        }
        assert!(serde_saphyr::from_str::<HttpConfig>("dialects: [klingon]").is_err());
    }
}
