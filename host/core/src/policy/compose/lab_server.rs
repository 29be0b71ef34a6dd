//! Decides the port and the probe of the program in a lab's container: from the policies, or else from the site's
//! configuration.

use super::{LabEnv, LabValue, Provenance, Source};
use crate::config::lab::{LabSection, ReadinessProbe};
use crate::policy::{LabProbe, LabServer};

/// The probe by which the kubelet checks that a lab answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedProbe {
    /// The complete path of an HTTP GET request. With `None`, the port only has to accept connections.
    pub path: Option<String>,
    /// The periods, the time limit and the failure threshold of the probe. The path in it is not used.
    pub timing: ReadinessProbe,
}

/// Returns the port of the lab: that of the policies, or else the one that the service has found to be free, or else
/// the site's.
pub(super) fn port(
    asked: &LabServer,
    free: Option<u16>,
    site: &LabSection,
    provenance: &mut Provenance,
) -> u16 {
    asked.port.unwrap_or_else(|| {
        let source = if free.is_some() { Source::Service } else { Source::Configuration };
        provenance.set("port", &source);
        free.unwrap_or(site.port)
    })
}

/// Returns the probe of the lab: that of the policies, or else the site's. `None` if the lab is ready as soon as it
/// runs.
pub(super) fn probe(
    asked: LabServer,
    site: &LabSection,
    env: &LabEnv,
    provenance: &mut Provenance,
) -> Option<CheckedProbe> {
    let timing = site.readiness_probe.clone();
    let Some(probe) = asked.probe else {
        provenance.set("probe", &Source::Configuration);
        let timing = timing?;
        let path = timing.path.as_deref().map(|path| below(base_url(env), path));
        return Some(CheckedProbe { path, timing });
    };
    let path = match probe {
        LabProbe::None => return None,
        LabProbe::Tcp => None,
        LabProbe::Http(path) if path.starts_with('/') => Some(path),
        LabProbe::Http(path) => Some(below(base_url(env), &path)),
    };
    Some(CheckedProbe { path, timing: timing.unwrap_or_default() })
}

fn below(base: &str, path: &str) -> String {
    format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/'))
}

/// Returns the URL path of the lab, as the Hub passed it in `JUPYTERHUB_SERVICE_PREFIX`.
pub(super) fn base_url(env: &LabEnv) -> &str {
    match env.get("JUPYTERHUB_SERVICE_PREFIX") {
        Some(LabValue::Plain(prefix)) if prefix.starts_with('/') => prefix,
        _ => "/",
    }
}
