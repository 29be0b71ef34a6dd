//! `lab.service.certificate`: labs that are reached over TLS.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::RouteFields;
use crate::names::ObjectName;
use crate::values::field_error::FieldError;

const KEY: &str = "lab.service.certificate";

/// Where the certificate of each lab comes from. It is for the names of the lab's Service, and for the host in `lab_url`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabCertificate {
    /// The service issues it, from the certificate authority in this Secret of its own namespace. The Secret has the type
    /// `kubernetes.io/tls`, with the keys `tls.crt` and `tls.key`.
    Authority(ObjectName),
    /// cert-manager issues it. This is the `spec` of the `Certificate` (`cert-manager.io/v1`), with at least `issuerRef`. The
    /// service adds `secretName`, `secretTemplate`, and `dnsNames` where there are none. The texts may contain `{name}`, the name of the lab's
    /// Service; `{namespace}`; `{prefix}`, the path of the lab's URL; and `{port}`.
    CertManager(Map<String, Value>),
}

/// Who issues the certificate of a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateIssuer {
    /// The service itself.
    Service,
    /// cert-manager.
    CertManager,
}

impl LabCertificate {
    /// Who issues it.
    pub fn issuer(&self) -> CertificateIssuer {
        match self {
            Self::Authority(_) => CertificateIssuer::Service,
            Self::CertManager(_) => CertificateIssuer::CertManager,
        }
    }

    pub(super) fn check(&self) -> Option<FieldError> {
        let Self::CertManager(spec) = self else { return None };
        let wrong = |field: &str, message: &str| {
            Some(FieldError::new(format!("{KEY}.cert_manager.{field}"), message.to_owned()))
        };
        let issuer = spec.get("issuerRef").and_then(|issuer| issuer.get("name"));
        if issuer.and_then(Value::as_str).is_none_or(str::is_empty) {
            return wrong(
                "issuerRef.name",
                "is missing; name the Issuer or ClusterIssuer that cert-manager has",
            );
        }
        for field in ["secretName", "secretTemplate"] {
            if spec.contains_key(field) {
                return wrong(field, "is set by the service for each lab; remove it");
            }
        }
        if spec.get("isCA").is_some_and(|is_ca| *is_ca != Value::Bool(false)) {
            return wrong("isCA", "must be false: a lab would issue certificates itself; remove it");
        }
        let message = RouteFields::unknown_field(&spec.clone().into())?;
        Some(FieldError::new(format!("{KEY}.cert_manager"), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(yaml: &str) -> Option<String> {
        let certificate: LabCertificate = serde_saphyr::from_str(yaml).unwrap();
        certificate.check().map(|problem| problem.to_string())
    }

    #[test]
    fn what_the_service_sets_itself_and_authorities_are_refused() {
        assert_eq!(problem("{authority: lab-authority}"), None);
        let issuer = "issuerRef: {name: labs, kind: ClusterIssuer}";
        assert_eq!(problem(&format!("cert_manager: {{{issuer}, dnsNames: ['{{name}}.example.org']}}")), None);
        for (more, expected) in [
            ("secretName: a", "cert_manager.secretName: is set by the service"),
            ("isCA: true", "cert_manager.isCA: must be false"),
            ("dnsNames: ['{user}.example.org']", "\"{user}.example.org\" has an unknown field"),
        ] {
            let problem = problem(&format!("cert_manager: {{{issuer}, {more}}}")).unwrap();
            assert!(problem.contains(expected), "{problem}");
        }
        assert!(problem("cert_manager: {duration: 2160h}").unwrap().contains("issuerRef.name: is missing"));
    }
}
