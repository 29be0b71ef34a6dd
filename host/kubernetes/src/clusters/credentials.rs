//! The credentials of another cluster, as a Secret holds them.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use serde_json::json;
use wasmspawner_core::custom_resource::environment::{CREDENTIALS_KEY, ClusterRef};

/// The reason why a cluster cannot be connected to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsProblem {
    /// The Secret does not exist.
    #[error("the Secret does not exist")]
    NotFound,
    /// The Secret contains no credentials that the service uses.
    #[error("{0}")]
    Invalid(String),
    /// The Secret could not be read now.
    #[error("the Secret could not be read: {0}")]
    Unreadable(String),
}

/// The reason why the credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialsError {
    #[error("the Secret has no `kubeconfig`, and no `token` for the target's `apiURL`")]
    Nothing,
    #[error("the key `{0}` is not text")]
    NotText(&'static str),
    /// The kubeconfig would make the service run a program, or read a file of its own.
    #[error("the kubeconfig uses {0}, which a Secret may not; write the token or the certificates into it")]
    Elsewhere(&'static str),
    #[error("the kubeconfig {0}")]
    Kubeconfig(String),
}

impl From<KubeconfigError> for CredentialsError {
    /// Describes the error without the contents of the Secret, which a parser's error quotes.
    fn from(error: KubeconfigError) -> Self {
        Self::Kubeconfig(match error {
            KubeconfigError::Parse(error) => match error.location() {
                Some(at) => format!("is no kubeconfig at line {}, column {}", at.line(), at.column()),
                None => "is no kubeconfig".to_owned(),
            },
            KubeconfigError::CurrentContextNotSet => "has no `current-context`".to_owned(),
            KubeconfigError::LoadContext(_) => {
                "has a `current-context` that is not among its contexts".to_owned()
            }
            KubeconfigError::LoadClusterOfContext(_) => {
                "has a context whose cluster is not among its clusters".to_owned()
            }
            KubeconfigError::MissingClusterUrl => "has no `server` in its cluster".to_owned(),
            KubeconfigError::ParseClusterUrl(_) => "has a `server` that is no URL".to_owned(),
            KubeconfigError::ParseProxyUrl(_) => "has a `proxy-url` that is no URL".to_owned(),
            KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
                "has a `certificate-authority-data` that is no certificate".to_owned()
            }
            KubeconfigError::LoadClientCertificate(_) => "has a wrong `client-certificate-data`".to_owned(),
            KubeconfigError::LoadClientKey(_) => "has a wrong `client-key-data`".to_owned(),
            _ => "cannot be used".to_owned(),
        })
    }
}

/// Builds the configuration of a client for the cluster from the data of the Secret.
pub(super) async fn kube_config(
    reference: &ClusterRef,
    data: &BTreeMap<String, ByteString>,
) -> Result<kube::Config, CredentialsError> {
    let mut kubeconfig = match text(data, CREDENTIALS_KEY)? {
        Some(written) => Kubeconfig::from_yaml(&written)?,
        None => from_token(reference, data)?,
    };
    refuse_elsewhere(&kubeconfig)?;
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        if let Some(api_url) = &reference.api_url {
            cluster.server = Some(api_url.clone());
        }
        if reference.insecure {
            cluster.insecure_skip_tls_verify = Some(true);
        }
    }
    Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

fn text(data: &BTreeMap<String, ByteString>, key: &'static str) -> Result<Option<String>, CredentialsError> {
    let value = data.get(key).map(|value| String::from_utf8(value.0.clone()));
    value.transpose().map_err(|_| CredentialsError::NotText(key))
}

fn from_token(
    reference: &ClusterRef,
    data: &BTreeMap<String, ByteString>,
) -> Result<Kubeconfig, CredentialsError> {
    let token = text(data, "token")?.filter(|_| reference.api_url.is_some());
    let token = token.ok_or(CredentialsError::Nothing)?;
    let kubeconfig = json!({
        "clusters": [{"name": "cluster", "cluster": {"certificate-authority-data": data.get("ca.crt")}}],
        "users": [{"name": "cluster", "user": {"token": token.trim()}}],
        "contexts": [{"name": "cluster", "context": {
            "cluster": "cluster", "user": "cluster", "namespace": text(data, "namespace")?,
        }}],
        "current-context": "cluster",
    });
    Ok(Kubeconfig::from_yaml(&kubeconfig.to_string())?)
}

/// Fails if the kubeconfig names programs or files. A person's kubeconfig may name them, but in a Secret they would be
/// the service's.
fn refuse_elsewhere(kubeconfig: &Kubeconfig) -> Result<(), CredentialsError> {
    for user in kubeconfig.auth_infos.iter().filter_map(|named| named.auth_info.as_ref()) {
        let uses = [
            (user.exec.is_some(), "a program (`exec`)"),
            (user.auth_provider.is_some(), "an `auth-provider`"),
            (user.token_file.is_some(), "a file (`tokenFile`)"),
            (user.client_certificate.is_some(), "a file (`client-certificate`)"),
            (user.client_key.is_some(), "a file (`client-key`)"),
        ];
        if let Some((_, what)) = uses.into_iter().find(|(used, _)| *used) {
            return Err(CredentialsError::Elsewhere(what));
        }
    }
    let files = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
    if files.into_iter().any(|cluster| cluster.certificate_authority.is_some()) {
        return Err(CredentialsError::Elsewhere("a file (`certificate-authority`)"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(api_url: Option<&str>) -> ClusterRef {
        ClusterRef {
            secret: wasmspawner_core::names::ObjectName::parse("far").unwrap(),
            api_url: api_url.map(str::to_owned),
            insecure: false,
        }
    }

    fn secret(key: &str, value: &str) -> BTreeMap<String, ByteString> {
        BTreeMap::from([(key.to_owned(), ByteString(value.as_bytes().to_vec()))])
    }

    fn kubeconfig(user: &str) -> String {
        format!(
            "{{clusters: [{{name: c, cluster: {{server: 'https://far.example:6443'}}}}], users: [{{name: u, user: {user}}}], contexts: [{{name: x, context: {{cluster: c, user: u, namespace: labs}}}}], current-context: x}}"
        )
    }

    #[tokio::test]
    async fn a_kubeconfig_or_a_token_with_the_url_of_the_target() {
        let config =
            kube_config(&reference(None), &secret("kubeconfig", &kubeconfig("{token: t}"))).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://far.example:6443/");
        assert_eq!(config.default_namespace, "labs");
        let other = reference(Some("https://other.example"));
        let config = kube_config(&other, &secret("token", "t")).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://other.example/");
        assert!(matches!(
            kube_config(&reference(None), &secret("token", "t")).await,
            Err(CredentialsError::Nothing)
        ));
    }

    #[tokio::test]
    async fn no_error_quotes_the_secret() {
        let secret_text = "eyJhbGciOiJSUzI1NiJ9";
        for written in [
            secret_text.to_owned(),
            format!("users:\n- name: u\n  user:\n    token: {secret_text}\n   wrong: x"),
            format!("users: [{{name: u, user: {{token: [{secret_text}]}}}}]"),
            format!("{{current-context: {secret_text}}}"),
            kubeconfig(&format!(
                "{{client-key-data: {secret_text}, client-certificate-data: {secret_text}}}"
            )),
            kubeconfig(&format!("{{token: {secret_text}}}"))
                .replace("'https://far.example:6443'", &format!("'https://x:{secret_text}@[/'")),
        ] {
            let refused = kube_config(&reference(None), &secret("kubeconfig", &written)).await;
            let said = crate::k8s::Causes(&refused.err().unwrap_or(CredentialsError::Nothing)).to_string();
            assert!(!said.contains(secret_text), "{said}");
        }
    }

    #[tokio::test]
    async fn a_secret_makes_the_service_run_no_program_and_read_no_file() {
        for user in
            ["{exec: {command: sh, apiVersion: v1}}", "{tokenFile: /etc/passwd}", "{client-key: /key}"]
        {
            let refused = kube_config(&reference(None), &secret("kubeconfig", &kubeconfig(user))).await;
            assert!(matches!(refused, Err(CredentialsError::Elsewhere(_))), "{user}: {refused:?}");
        }
    }
}
