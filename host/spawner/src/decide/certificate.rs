//! Issues the certificates of labs from the site's certificate authority.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use wasmspawner_core::config::lab::LabCertificate;
use wasmspawner_core::lifecycle::Failure;
use wasmspawner_core::manifest::{IssuedCertificate, dns_names};
use wasmspawner_core::names::ObjectName;
use wasmspawner_core::values::secret::SecretString;

use super::approve::Approved;
use crate::context::Context;
use crate::errors::SpawnError;

/// The validity of a certificate, which is longer than labs run.
const VALID_FOR: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The most by which the clocks of nodes may differ.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_hours(1);

/// Issues the certificate of a lab, if the service itself does that at this site.
pub(crate) async fn issue_certificate(
    context: &Context,
    approved: &Approved,
) -> Result<Option<IssuedCertificate>, SpawnError> {
    let config = context.config.current();
    let section = &config.lab.section;
    let Some(service) = section.service.as_ref().filter(|_| approved.entrance.certificate().is_some()) else {
        return Ok(None);
    };
    let Some(LabCertificate::Authority(secret)) = &service.certificate else { return Ok(None) };
    let data = context.secrets.read(secret.as_str()).await?;
    let prefix = approved.request.env.get("JUPYTERHUB_SERVICE_PREFIX").map_or("/", String::as_str);
    let names = dns_names(&approved.names, service.lab_url.as_deref(), prefix, section.port);
    let issued = issue(&data, &names, Timestamp::now()).map_err(|why| unusable(secret, &why))?;
    Ok(Some(issued))
}

fn unusable(secret: &ObjectName, why: &str) -> SpawnError {
    let message = format!(
        "The Secret `{secret}`, from which labs get their certificates (lab.service.certificate.authority), cannot be used: \
         {why}. This is for the site's administrators: `kubectl create secret tls {secret}` makes one from a certificate and \
         a key"
    );
    SpawnError::Cluster(Failure::service("InvalidCertificateAuthority", message))
}

/// Issues a certificate for these names from the authority in a Secret.
fn issue(
    secret: &BTreeMap<String, ByteString>,
    names: &[String],
    now: Timestamp,
) -> Result<IssuedCertificate, String> {
    let authority = text(secret, "tls.crt")?;
    let key = text(secret, "tls.key")?;
    let key = KeyPair::from_pem(key).map_err(|error| {
        format!(
            "`tls.key` is no private key in the format PKCS #8, to which `openssl pkcs8 -topk8 -nocrypt` converts one ({error})"
        )
    })?;
    let issuer = Issuer::from_ca_cert_pem(authority, key)
        .map_err(|error| format!("`tls.crt` is not the certificate of an authority ({error})"))?;
    let certificate = |error: rcgen::Error| format!("no certificate for {}: {error}", names.join(", "));
    let own_key = KeyPair::generate().map_err(certificate)?;
    let mut params = CertificateParams::new(names).map_err(certificate)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Jupyter lab");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_before = moment(now.checked_sub(CLOCK_SKEW))?;
    params.not_after = moment(now.checked_add(VALID_FOR))?;
    let signed = params.signed_by(&own_key, &issuer).map_err(certificate)?;
    Ok(IssuedCertificate {
        // A client that knows only the root also needs the authority's certificate, where that is not the root.
        chain: format!("{}{authority}", signed.pem()),
        key: SecretString::new(own_key.serialize_pem()),
        authority: authority.to_owned(),
    })
}

fn text<'a>(secret: &'a BTreeMap<String, ByteString>, key: &str) -> Result<&'a str, String> {
    let value = secret.get(key).ok_or_else(|| format!("it has no key `{key}`"))?;
    std::str::from_utf8(&value.0).map_err(|_| format!("`{key}` is not PEM"))
}

fn moment(at: Result<Timestamp, jiff::Error>) -> Result<OffsetDateTime, String> {
    let at = at.map_err(|error| error.to_string())?;
    OffsetDateTime::from_unix_timestamp(at.as_second()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use rcgen::BasicConstraints;

    use super::*;

    fn authority() -> BTreeMap<String, ByteString> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let certificate = params.self_signed(&key).unwrap().pem();
        let data = [("tls.crt", certificate), ("tls.key", key.serialize_pem())];
        data.map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).into()
    }

    #[test]
    fn each_certificate_has_a_key_of_its_own_and_leads_to_the_authority() {
        let secret = authority();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let issue = || issue(&secret, &["nb-ada.labs.svc".to_owned()], now).unwrap();
        let (one, other) = (issue(), issue());
        assert_ne!(one.key, other.key);
        assert_eq!(one.authority.as_bytes(), secret["tls.crt"].0);
        assert!(one.chain.ends_with(&one.authority) && one.chain.len() > one.authority.len());
    }

    #[test]
    fn what_is_wrong_with_a_secret_is_said_without_its_content() {
        let problem = |change: &dyn Fn(&mut BTreeMap<String, ByteString>)| {
            let mut secret = authority();
            change(&mut secret);
            issue(&secret, &["nb-ada.labs.svc".to_owned()], Timestamp::UNIX_EPOCH).unwrap_err()
        };
        let put = |key: &str, text: &str, secret: &mut BTreeMap<String, ByteString>| {
            secret.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
        };
        assert_eq!(problem(&|secret| drop(secret.remove("tls.key"))), "it has no key `tls.key`");
        let wrong_key = problem(&|secret| put("tls.key", "s3cret", secret));
        assert!(wrong_key.contains("openssl pkcs8 -topk8") && !wrong_key.contains("s3cret"), "{wrong_key}");
        let wrong_certificate = problem(&|secret| put("tls.crt", "nothing", secret));
        assert!(wrong_certificate.starts_with("`tls.crt` is not the certificate"), "{wrong_certificate}");
    }
}
