//! `lab.service`: a Service for each lab.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CertificateIssuer, LabCertificate};
use crate::config::RouteFields;
use crate::custom_resource::environment::ClusterRef;
use crate::values::field_error::FieldError;

/// A Service in front of each lab, so that the lab has a name in DNS that stays the same. It is headless: the name means the
/// address of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LabService {
    /// The URL at which the Hub reaches a lab, without the path, such as `http://{name}.{namespace}.svc:{port}`. It may contain
    /// `{name}`, the name of the Service; `{namespace}`; `{prefix}`, the path of the lab's URL; and `{port}`. Default: the
    /// address of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab_url: Option<String>,
    /// The certificate with which each lab answers over TLS; then `lab_url` begins with `https://`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<LabCertificate>,
}

/// How JupyterHub reaches a lab in the service's own cluster. In another cluster, that cluster's own routes lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entrance {
    /// At the address of its pod.
    Pod,
    /// Through a Service, without TLS.
    Service,
    /// Through a Service, over TLS. The certificate is from this issuer.
    Tls(CertificateIssuer),
}

impl LabService {
    /// The way into a lab that has such a Service.
    pub fn entrance(&self) -> Entrance {
        let issuer = self.certificate.as_ref().map(LabCertificate::issuer);
        issuer.map_or(Entrance::Service, Entrance::Tls)
    }

    pub(super) fn check(&self) -> Option<FieldError> {
        let url = self.lab_url.as_deref();
        if let Some(problem) = url.and_then(RouteFields::problem) {
            return Some(FieldError::new("lab.service.lab_url", problem));
        }
        let certificate = self.certificate.as_ref()?;
        if url.is_none_or(|url| !url.starts_with("https://")) {
            let message = "must begin with https:// where labs have certificates, such as \
                           https://{name}.{namespace}.svc:{port}: no certificate is for the address of a pod";
            return Some(FieldError::new("lab.service.lab_url", message));
        }
        certificate.check()
    }
}

impl Entrance {
    /// Returns the way into a lab that has no Service in the service's own cluster if it is in `cluster`.
    #[must_use]
    pub fn in_cluster(self, cluster: Option<&ClusterRef>) -> Self {
        if cluster.is_some() { Self::Pod } else { self }
    }

    /// True if the lab has a Service.
    pub fn has_service(self) -> bool {
        self != Self::Pod
    }

    /// The issuer of the lab's certificate; `None` if the lab is reached without TLS.
    pub fn certificate(self) -> Option<CertificateIssuer> {
        match self {
            Self::Tls(issuer) => Some(issuer),
            Self::Pod | Self::Service => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_with_a_certificate_is_reached_by_name_over_tls() {
        let problem = |yaml: &str| {
            let service: LabService = serde_saphyr::from_str(yaml).unwrap();
            service.check().map(|problem| problem.to_string())
        };
        let certificate = "certificate: {authority: lab-authority}";
        assert_eq!(
            problem(&format!("{{lab_url: 'https://{{name}}.{{namespace}}.svc', {certificate}}}")),
            None
        );
        for url in ["lab_url: 'http://{name}.{namespace}.svc', ", ""] {
            let problem = problem(&format!("{{{url}{certificate}}}")).unwrap();
            assert!(problem.starts_with("lab.service.lab_url: must begin with https://"), "{problem}");
        }
    }
}
