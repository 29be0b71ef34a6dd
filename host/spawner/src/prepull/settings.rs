use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use wasmspawner_core::config::Config;
use wasmspawner_core::images::{PrepullLimits, PullPodTemplate, WantedImage};

/// The part of the configuration that controls how images are pulled in advance.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) limits: PrepullLimits,
    /// The images that nodes are to have, in addition to those of policies.
    pub(super) images: Vec<WantedImage>,
    /// The image that nodes are to have if nobody wants any other.
    pub(super) lab_image: Option<String>,
    pub(super) template: PullPodTemplate,
}

impl Settings {
    /// Reads the settings; `None` if nothing is pulled in advance.
    pub(super) fn from_config(config: &Config, owner: Option<&OwnerReference>) -> Option<Self> {
        let prepull = config.images.prepull.as_ref()?;
        let lab = &config.lab.section;
        let pull_secret = lab.secrets.iter().find(|secret| secret.pull_secret);
        Some(Self {
            limits: prepull.limits(),
            images: prepull.images.clone(),
            lab_image: lab.image.clone(),
            template: PullPodTemplate {
                instance: config.kubernetes.instance(),
                owner: owner.cloned(),
                pull_secret: pull_secret.map(|secret| secret.name.to_string()),
                time_limit: prepull.time_limit,
            },
        })
    }
}
