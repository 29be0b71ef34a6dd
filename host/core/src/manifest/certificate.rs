//! The certificate with which a lab answers over TLS.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::metadata;
use super::object_kind::ObjectKind;
use super::service::service_name;
use crate::config::RouteFields;
use crate::names::{LabNames, ObjectName};
use crate::policy::ValidatedSpawn;
use crate::policy::compose::{TLS_CERTIFICATE, TLS_KEY};
use crate::values::secret::SecretString;

/// The key of the authority's certificate in the lab's Secret. cert-manager uses the same key.
const AUTHORITY: &str = "ca.crt";

/// The kind of the cert-manager objects that request certificates.
pub const CERTIFICATES: ObjectKind =
    ObjectKind { group: "cert-manager.io", version: "v1", kind: "Certificate", plural: "certificates" };

/// A certificate that the service has issued.
#[derive(Debug, Clone)]
pub struct IssuedCertificate {
    /// The certificate, followed by those that lead to the authority's, as PEM.
    pub chain: String,
    /// The private key of the certificate, as PEM.
    pub key: SecretString,
    /// The certificate of the authority, as PEM.
    pub authority: String,
}

/// A request for a certificate from cert-manager.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    api_version: &'static str,
    kind: &'static str,
    /// The metadata.
    pub metadata: ObjectMeta,
    spec: Value,
}

/// Returns the name of the Secret with a lab's certificate. No other object of a lab has a name with this prefix,
/// unless a site chooses such names.
pub(super) fn secret_name(names: &LabNames) -> String {
    format!("tls.{}", names.object)
}

/// Returns the names for which the certificate of a lab is valid: those of its Service, as pods look it up, and the
/// host in `lab_url`.
pub fn dns_names(names: &LabNames, lab_url: Option<&str>, prefix: &str, port: u16) -> Vec<String> {
    let service = service_name(&names.pod);
    let namespace = &names.namespace;
    let mut all = vec![
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
        format!("{service}.{namespace}"),
        service.to_string(),
    ];
    let url = lab_url.map(|template| fields(names, &service, prefix, port).fill(template));
    let host = url.as_deref().and_then(host).filter(|host| !all.iter().any(|name| name == host));
    all.extend(host.map(str::to_owned));
    all
}

/// Builds the Secret with a certificate that the service has issued.
pub fn certificate_secret(spawn: &ValidatedSpawn, issued: &IssuedCertificate) -> Secret {
    let file = |key: &str, text: &str| (key.to_owned(), ByteString(text.as_bytes().to_vec()));
    Secret {
        metadata: metadata_of(spawn),
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(BTreeMap::from([
            file(TLS_CERTIFICATE, &issued.chain),
            file(TLS_KEY, issued.key.expose()),
            file(AUTHORITY, &issued.authority),
        ])),
        ..Secret::default()
    }
}

/// Builds the object for which cert-manager creates that Secret. The Secret gets the labels of the lab, so that it is
/// deleted with the lab.
pub fn requested_certificate(
    spawn: &ValidatedSpawn,
    template: &Map<String, Value>,
    lab_url: Option<&str>,
) -> Certificate {
    let names = &spawn.names;
    let service = service_name(&names.pod);
    let fields = fields(names, &service, spawn.base_url(), spawn.port);
    let metadata = metadata_of(spawn);
    let mut spec = fields.fill_value(&template.clone().into());
    if let Some(spec) = spec.as_object_mut() {
        spec.entry("dnsNames")
            .or_insert_with(|| json!(dns_names(names, lab_url, spawn.base_url(), spawn.port)));
        spec.insert("secretName".to_owned(), json!(secret_name(names)));
        let labels_and_annotations =
            json!({ "labels": metadata.labels, "annotations": metadata.annotations });
        spec.insert("secretTemplate".to_owned(), labels_and_annotations);
    }
    let (api_version, kind) = ("cert-manager.io/v1", CERTIFICATES.kind);
    Certificate { api_version, kind, metadata, spec }
}

fn fields<'a>(names: &'a LabNames, service: &'a ObjectName, prefix: &'a str, port: u16) -> RouteFields<'a> {
    RouteFields { name: service.as_str(), namespace: names.namespace.as_str(), prefix, port }
}

/// Returns the metadata of both objects, which have the name of the Secret.
fn metadata_of(spawn: &ValidatedSpawn) -> ObjectMeta {
    let mut metadata = metadata::of_lab(spawn, &spawn.names.object);
    metadata.name = Some(secret_name(&spawn.names));
    metadata
}

/// Returns the host in a URL.
fn host(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    let authority = rest.split('/').next()?;
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    (!host.is_empty()).then_some(host)
}
