//! The `names` section of the configuration.

use serde::{Deserialize, Serialize};

use super::{Compat, NamespaceName, SlugScheme};

/// How names are made: a slug scheme and a template for each name. Unset keys have the defaults shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NamesConfig {
    /// What `{username}`, `{servername}` and `{user_server}` mean.
    pub scheme: SlugScheme,
    /// Whose word counts where KubeSpawner's page and its release 7.1.0 differ.
    pub compat: Compat,
    /// The namespace JupyterHub runs in, for `{hubnamespace}`.
    pub hub_namespace: NamespaceName,
    /// The namespace of a lab.
    pub namespace: String,
    /// The lab's pod.
    pub pod: String,
    /// The lab's own volume claim.
    pub pvc: String,
    /// Once a server has had a volume claim, its claim and namespace keep their names, whatever the templates say
    /// later. Also looks for the claim that a KubeSpawner before release 7 made. Only where namespaces are retained:
    /// elsewhere the claims go with the lab.
    pub remember_pvc_name: bool,
    /// What the names of the lab's other objects start with.
    pub object_prefix: String,
    /// The lab's service account.
    pub service_account: String,
}

impl Default for NamesConfig {
    fn default() -> Self {
        Self {
            scheme: SlugScheme::default(),
            compat: Compat::default(),
            hub_namespace: NamespaceName::jupyterhub(),
            namespace: "nublado-{user_server}".to_owned(),
            pod: "nb-{user_server}".to_owned(),
            pvc: "claim-{user_server}".to_owned(),
            remember_pvc_name: true,
            object_prefix: "nb-{user_server}".to_owned(),
            service_account: "nb-{user_server}".to_owned(),
        }
    }
}
