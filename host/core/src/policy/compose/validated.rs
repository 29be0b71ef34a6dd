use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use super::{LabEnv, Provenance, env};
use crate::config::NamespaceReclaim;
use crate::config::lab::LabSection;
use crate::identity::Identity;
use crate::lab::{JobId, LabKey};
use crate::names::{LabNames, LabelValue};
use crate::policy::{
    AffinityPreset, Image, InitContainer, Mount, Options, Resources, TimeLimits, Toleration, Volume,
};
use crate::quota::Quota;
use crate::secret::{SecretBytes, SecretString};

/// A spawn of which everything is decided and checked: [`crate::manifest::build`] turns it into objects and cannot
/// fail. Only [`super::compose()`] makes one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ValidatedSpawn {
    /// Which lab.
    pub key: LabKey,
    /// The operation it belongs to.
    pub job_id: JobId,
    /// The uid of its record.
    pub spawn: LabelValue,
    /// Whose lab, in numbers.
    pub identity: Identity,
    /// The parsed options.
    pub options: Options,
    /// The names of the lab's objects.
    pub names: LabNames,
    /// The lab's image.
    pub image: Image,
    /// The lab's environment.
    pub env: LabEnv,
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
    /// Taints the pod may live with.
    pub tolerations: Vec<Toleration>,
    /// Labels the node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Where the lab goes among nodes that would all do.
    pub affinity: AffinityPreset,
    /// Volumes of the pod beside the service's own.
    pub volumes: Vec<Volume>,
    /// Mounts of the lab's container beside the service's own. Every volume exists.
    pub mounts: Vec<Mount>,
    /// Init containers that run this time.
    pub init_containers: Vec<InitContainer>,
    /// Replaces the image's entry point.
    pub command: Option<Vec<String>>,
    /// Replaces the image's arguments.
    pub args: Option<Vec<String>>,
    /// Where the lab starts.
    pub working_dir: Option<String>,
    /// How long operations of this lab may take, within the operator's maximum; absent for the service's default.
    pub time_limits: TimeLimits,
    /// Which class of environment the lab belongs to.
    pub environment_class: Option<String>,
    /// How much the user may have in all.
    pub quota: Quota,
    /// The user's own token.
    pub token: SecretString,
    /// The site's secrets, by their key in the lab's Secret.
    pub site_secrets: BTreeMap<String, SecretBytes>,
    /// The site's registry credential.
    pub pull_secret: Option<SecretBytes>,
    /// What the site says about every lab.
    pub config: LabSection,
    /// Whose its namespace is.
    pub namespaces: NamespaceReclaim,
    /// The installation that makes it.
    pub instance: LabelValue,
    /// Who decided what.
    pub provenance: Provenance,
    /// The granted patches of the pod, in order.
    pub(crate) pod_patches: Vec<Pod>,
}

impl ValidatedSpawn {
    /// The lab's environment as it may be shown.
    pub fn redacted_env(&self) -> BTreeMap<String, String> {
        env::redacted(&self.env)
    }
}
