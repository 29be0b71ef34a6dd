use super::Source;
use crate::config::lab::{LabConfig, SiteSecretData};
use crate::lab::JobId;
use crate::names::{LabNames, LabelValue};
use crate::policy::{Customization, Grants};
use crate::quota::Quota;
use crate::spawn::SpawnRequest;

/// What one policy of the chain answered to `build-pod`.
#[derive(Clone, Debug)]
pub struct ChainAnswer {
    /// The policy's name.
    pub policy: String,
    /// What the operator grants it.
    pub grants: Grants,
    /// What it wants.
    pub customization: Customization,
}

/// Everything a spawn is composed of.
#[derive(Clone, Debug)]
pub struct SpawnInputs<'a> {
    /// Who wants what.
    pub request: SpawnRequest,
    /// The operation it belongs to.
    pub job_id: JobId,
    /// The uid of its record.
    pub spawn: LabelValue,
    /// The names of the lab's objects.
    pub names: LabNames,
    /// What the policies answered, in the order of the chain.
    pub answers: Vec<ChainAnswer>,
    /// Every limit that applies to the user: the policies' and the configuration's.
    pub quotas: Vec<(Source, Quota)>,
    /// What the site says about every lab.
    pub lab: &'a LabConfig,
    /// The values of the site's secrets, see [`LabConfig::needed_secrets`].
    pub site_secrets: SiteSecretData,
    /// A lab of this user has started successfully before.
    pub provisioned: bool,
}
