//! The lab that a request would get, computed without a cluster.

use jiff::Timestamp;
use uuid::Uuid;
use wasmspawner_core::config::lab::SiteSecretData;
use wasmspawner_core::config::lab::{CertificateIssuer, Entrance};
use wasmspawner_core::lifecycle::{Failure, Operation, OperationKind};
use wasmspawner_core::manifest::IssuedCertificate;
use wasmspawner_core::manifest::LabObjects;
use wasmspawner_core::names::KeptNames;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::policy::compose::Provenance;
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::values::secret::{SecretBytes, SecretString};

use super::approve::approve;
use super::decide_with;
use super::from_cluster::FromCluster;
use super::user_use::UserUse;
use crate::context::site_rules::SiteRules;
use crate::context::volumes::OwnClaim;
use crate::errors::SpawnError;
use wasmspawner_policies::Patience;

/// The lab that a request would get.
#[derive(Debug)]
pub struct Preview {
    /// The objects that would be created.
    pub objects: LabObjects,
    /// The policy or setting that decided each field.
    pub provenance: Provenance,
}

/// Decides `request` as a spawn does, with assumptions in place of the cluster: the user has no other lab, every Secret
/// of the site exists, and `provisioned` says whether the user has had a lab before. Job id and times are zero, so that
/// equal requests give equal objects.
pub async fn preview(
    rules: &SiteRules<'_>,
    request: SpawnRequest,
    provisioned: bool,
) -> Result<Preview, Failure> {
    let names = rules.names(&KeptNames::default(), &request.key);
    let names = names.map_err(|error| SpawnError::from(error).into_failure())?;
    let approved =
        approve(rules, names, request, UserUse::default()).await.map_err(SpawnError::into_failure)?;
    let cluster = FromCluster {
        provisioned,
        site_secrets: placeholders(rules),
        own_claim: OwnClaim::Today,
        certificate: (approved.entrance == Entrance::Tls(CertificateIssuer::Service))
            .then(placeholder_certificate),
        workload: None,
    };
    let decided = decide_with(rules, &approved, &operation(), NO_RECORD, cluster, &Patience::none()).await?;
    Ok(Preview { objects: decided.objects, provenance: decided.provenance })
}

/// A stand-in for the uid of a record, because no record is written.
const NO_RECORD: &str = "00000000-0000-0000-0000-000000000000";

fn placeholders(rules: &SiteRules<'_>) -> SiteSecretData {
    let needed = rules.config.lab.needed_secrets();
    needed.into_iter().map(|key| (key, SecretBytes::new("placeholder"))).collect()
}

fn placeholder_certificate() -> IssuedCertificate {
    let text = "placeholder";
    IssuedCertificate { chain: text.to_owned(), key: SecretString::new(text), authority: text.to_owned() }
}

fn operation() -> Operation {
    Operation {
        job_id: JobId::new(Uuid::nil()),
        kind: OperationKind::Spawn,
        started_at: Timestamp::UNIX_EPOCH,
        deadline: Timestamp::UNIX_EPOCH,
    }
}
