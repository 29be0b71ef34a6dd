use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use super::{CheckedProbe, LabEnv, LabValue, Provenance, Source, env};
use crate::config::NamespaceReclaim;
use crate::config::lab::LabSection;
use crate::names::lab::{JobId, LabKey};
use crate::names::{EnvName, LabNames, LabelValue};
use crate::policy::{
    AffinityPreset, Image, InitContainer, Lifted, Mount, Options, Resources, TextFile, TimeLimits,
    Toleration, Volume,
};
use crate::users::identity::Identity;
use crate::users::quota::Quota;
use crate::values::secret::{SecretBytes, SecretString};

/// The directory in which a lab finds its certificate: the files `tls.crt`, `tls.key` and, if its authority is known,
/// `ca.crt`.
pub const CERTIFICATE_PATH: &str = "/etc/wasmspawner/tls";

/// The key of the certificate in a Secret of the type `kubernetes.io/tls`.
pub(crate) const TLS_CERTIFICATE: &str = "tls.crt";
/// The key of the private key in the same Secret as [`TLS_CERTIFICATE`].
pub(crate) const TLS_KEY: &str = "tls.key";

/// A completely decided and checked spawn. [`crate::manifest::build`] converts it to objects and cannot fail. Only
/// [`super::compose()`] creates one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ValidatedSpawn {
    /// The lab.
    pub key: LabKey,
    /// The operation that the spawn belongs to.
    pub job_id: JobId,
    /// The uid of the spawn's record.
    pub spawn: LabelValue,
    /// The user with their UID and GIDs.
    pub identity: Identity,
    /// The parsed options.
    pub options: Options,
    /// The names of the lab's objects.
    pub names: LabNames,
    /// The lab's image.
    pub image: Image,
    /// The lab's environment.
    pub env: LabEnv,
    /// The port on which the lab's program listens.
    pub port: u16,
    /// True if the lab answers over TLS, with the certificate that is mounted into it; see
    /// [`ValidatedSpawn::serve_tls`].
    pub serves_tls: bool,
    /// The probe by which the kubelet checks that the lab answers; absent if the lab is ready as soon as it runs.
    pub probe: Option<CheckedProbe>,
    /// Labels of every object, from the site.
    pub site_labels: BTreeMap<String, String>,
    /// Annotations of every object, from the site.
    pub site_annotations: BTreeMap<String, String>,
    /// Labels of the pod, from policies.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pod, from policies.
    pub annotations: BTreeMap<String, String>,
    /// Resources of the lab's container.
    pub resources: Resources,
    /// Taints that the pod tolerates.
    pub tolerations: Vec<Toleration>,
    /// Labels that the node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Preference among suitable nodes.
    pub affinity: AffinityPreset,
    /// Volumes of the pod, in addition to the service's own.
    pub volumes: Vec<Volume>,
    /// Mounts of the lab's container, in addition to the service's own. Every volume exists.
    pub mounts: Vec<Mount>,
    /// Text files of policies, beside those of the site. Nothing else is mounted at their paths.
    pub files: Vec<TextFile>,
    /// The parts of the security baseline that are lifted.
    pub lifted: Lifted,
    /// The init containers that run at this start.
    pub init_containers: Vec<InitContainer>,
    /// Replaces the image's entry point.
    pub command: Option<Vec<String>>,
    /// Replaces the image's arguments.
    pub args: Option<Vec<String>>,
    /// The working directory of the lab's container.
    pub working_dir: Option<String>,
    /// Time limits of this lab's operations, within the operator's maximum; absent for the service's default.
    pub time_limits: TimeLimits,
    /// The class of environment that the lab belongs to.
    pub environment_class: Option<String>,
    /// The limits of the user's resources in total.
    pub quota: Quota,
    /// The user's own token.
    pub token: SecretString,
    /// The site's secrets, by their key in the lab's Secret.
    pub site_secrets: BTreeMap<String, SecretBytes>,
    /// The site's registry credential.
    pub pull_secret: Option<SecretBytes>,
    /// The site's configuration for every lab.
    pub config: LabSection,
    /// The rule for namespaces, which decides whether the lab has one of its own.
    pub namespaces: NamespaceReclaim,
    /// The installation of the service that creates the lab.
    pub instance: LabelValue,
    /// The record of who decided each setting.
    pub provenance: Provenance,
    /// False if the lab runs under an existing service account, which is not the service's.
    pub has_own_account: bool,
    /// The granted patches of the pod, in order.
    pub(crate) pod_patches: Vec<Pod>,
}

impl ValidatedSpawn {
    /// The user's home.
    pub(crate) fn home(&self) -> String {
        match self.names.fields.home() {
            "" => self.identity.home(),
            home => home.to_owned(),
        }
    }

    /// The path and the content of each text file of the lab: those of the site, and then those of policies.
    pub(crate) fn text_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let of_site = self.config.files.iter().map(|(path, content)| (path.as_str(), content.as_str()));
        of_site.chain(self.files.iter().map(|file| (file.path.as_str(), file.content.as_str())))
    }

    /// Makes the lab answer over TLS. Sets the variables from which JupyterHub's single-user server learns of its
    /// certificate (`singleuser/extension.py`, JupyterHub 6.1).
    pub fn serve_tls(&mut self) {
        self.serves_tls = true;
        for (name, file) in
            [("JUPYTERHUB_SSL_KEYFILE", TLS_KEY), ("JUPYTERHUB_SSL_CERTFILE", TLS_CERTIFICATE)]
        {
            let path = format!("{CERTIFICATE_PATH}/{file}");
            self.env.insert(EnvName::constant(name), LabValue::Plain(path));
            self.provenance.set(format!("env.{name}"), &Source::Service);
        }
    }

    /// The path of the lab's URL.
    pub fn base_url(&self) -> &str {
        super::lab_server::base_url(&self.env)
    }

    /// The lab's environment as it may be shown.
    pub fn redacted_env(&self) -> BTreeMap<String, String> {
        env::redacted(&self.env)
    }
}
