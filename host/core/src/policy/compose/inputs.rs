use super::Source;
use crate::config::lab::{LabConfig, SiteSecretData};
use crate::lab::JobId;
use crate::names::{LabNames, LabelValue};
use crate::policy::ChainAnswer;
use crate::quota::Quota;
use crate::spawn::SpawnRequest;

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
    /// The limits that policies set for the user, beside those of the user's identity provider.
    pub quotas: Vec<(Source, Quota)>,
    /// The site's configuration for every lab.
    pub lab: &'a LabConfig,
    /// The values of the site's secrets, see [`LabConfig::needed_secrets`].
    pub site_secrets: SiteSecretData,
    /// True if a lab of this user has become ready before.
    pub provisioned: bool,
}
