//! The `names` section of the configuration.

use serde::{Deserialize, Serialize};

use super::{Compat, NamespaceName, SlugScheme};

/// How names are made: a slug scheme, and a template for each name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NamesConfig {
    /// The slug scheme of the fields `{username}`, `{servername}` and `{user_server}`.
    pub scheme: SlugScheme,
    /// Which rule applies where KubeSpawner's documentation and its release 7.1.0 differ.
    pub compat: Compat,
    /// The namespace of JupyterHub, for the field `{hubnamespace}`.
    pub hub_namespace: NamespaceName,
    /// Template of the lab's namespace.
    pub namespace: String,
    /// Template of the pod's name.
    pub pod: String,
    /// Template of the name of the lab's own volume claim.
    pub pvc: String,
    /// Once a server has had a volume claim, its claim and namespace keep their names, even if the templates change.
    /// With this, the service also looks for a claim that a KubeSpawner before release 7 created. It applies only where
    /// namespaces are retained; elsewhere claims are deleted with the lab.
    pub remember_pvc_name: bool,
    /// Template of the prefix of the names of the lab's other objects.
    pub object_prefix: String,
    /// Template of the name of the lab's service account.
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
