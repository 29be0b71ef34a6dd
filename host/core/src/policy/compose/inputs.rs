use std::sync::Arc;

use super::Source;
use crate::config::UnpinnedImages;
use crate::config::lab::{LabConfig, SiteSecretData};
use crate::images::Inventory;
use crate::names::lab::JobId;
use crate::names::{LabNames, LabelValue};
use crate::policy::spawn::SpawnRequest;
use crate::policy::{ChainAnswer, Image};
use crate::users::quota::Quota;

/// The inputs from which a spawn is composed.
#[derive(Clone, Debug)]
pub struct SpawnInputs<'a> {
    /// The request of the user.
    pub request: SpawnRequest,
    /// The operation that the spawn belongs to.
    pub job_id: JobId,
    /// The uid of the spawn's record.
    pub spawn: LabelValue,
    /// The names of the lab's objects.
    pub names: LabNames,
    /// The answers of the policies, in the order of the chain.
    pub answers: Vec<ChainAnswer>,
    /// The limits that policies set for the user, in addition to those of the user's identity provider.
    pub quotas: Vec<(Source, Quota)>,
    /// The site's configuration for every lab.
    pub lab: &'a LabConfig,
    /// The values of the site's secrets, see [`LabConfig::needed_secrets`].
    pub site_secrets: SiteSecretData,
    /// True if a lab of this user has become ready before.
    pub provisioned: bool,
    /// The inputs for the lab's image.
    pub images: ImageInputs,
    /// The owner of the pod that is composed.
    pub pod: PodOwner,
    /// The port of a lab that shares its pod with other containers, unless a policy decides the port.
    pub port: Option<u16>,
}

/// The owner of a pod that is composed. The security baseline can be lifted in pods of labs alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodOwner {
    /// A lab.
    Lab,
    /// A kernel or a Dask pool of a lab.
    Child,
    /// A workload that gets the lab in its own pods.
    Workload,
}

/// The image that the user chose, the inventory of the registries, and the rule for unpinned images.
#[derive(Clone, Debug, Default)]
pub struct ImageInputs {
    /// The image that the user chose from the menu, with the source of the menu. A policy's answer to `build-pod`
    /// overrides it.
    pub chosen: Option<(Source, Image)>,
    /// The images that the registries have.
    pub inventory: Arc<Inventory>,
    /// The rule for a lab whose image has no known digest.
    pub unpinned: UnpinnedImages,
}
