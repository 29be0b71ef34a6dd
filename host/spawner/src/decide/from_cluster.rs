//! The facts from the cluster that a decision about a lab needs.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use wasmspawner_core::config::lab::{SecretKey, SiteSecretData};
use wasmspawner_core::manifest::IssuedCertificate;
use wasmspawner_core::values::secret::SecretBytes;

use super::approve::Approved;
use super::certificate::issue_certificate;
use super::workload_requests::{self, AdmittedWorkload};
use crate::context::Context;
use crate::context::volumes::OwnClaim;
use crate::errors::SpawnError;
use wasmspawner_kubernetes::k8s::KubernetesError;
use wasmspawner_policies::Patience;

/// The facts from the cluster that a decision needs.
pub(crate) struct FromCluster {
    pub(crate) provisioned: bool,
    pub(crate) site_secrets: SiteSecretData,
    pub(crate) own_claim: OwnClaim,
    /// The lab's certificate, if the service issues it.
    pub(crate) certificate: Option<IssuedCertificate>,
    /// The workload into which the lab is to be put.
    pub(crate) workload: Option<AdmittedWorkload>,
}

impl FromCluster {
    /// Reads the facts for a lab whose record has the uid `spawn`.
    pub(crate) async fn read(
        context: &Context,
        approved: &Approved,
        spawn: &str,
        patience: &Patience,
    ) -> Result<Self, SpawnError> {
        let (site_secrets, own_claim, certificate) = tokio::try_join!(
            async { Ok(site_secrets(context).await?) },
            async { Ok(own_claim(context, approved).await?) },
            issue_certificate(context, approved),
        )?;
        Ok(Self {
            provisioned: context.provisioned.contains(&approved.request.key.user),
            site_secrets,
            own_claim,
            certificate,
            workload: workload_requests::admit(context, approved, spawn, patience).await?,
        })
    }

    /// The facts for a part of a pool.
    pub(crate) fn of_part(&self) -> Self {
        Self {
            provisioned: self.provisioned,
            site_secrets: self.site_secrets.clone(),
            own_claim: OwnClaim::Today,
            certificate: None,
            workload: None,
        }
    }
}

async fn own_claim(context: &Context, approved: &Approved) -> Result<OwnClaim, KubernetesError> {
    match &context.volumes {
        // The namespace that a claim has brought contains nothing from before.
        _ if approved.place.claim().is_some() || approved.place.workload().is_some() => Ok(OwnClaim::Today),
        // A child's claims have the names of its lab's claims. The lab has already looked for older ones.
        Some(volumes) if approved.child.is_none() => {
            volumes.own_claim(&approved.request.key, &approved.names, &context.config.current().names).await
        }
        _ => Ok(OwnClaim::Today),
    }
}

/// The values of the site's secrets that labs need, with one request per Secret.
async fn site_secrets(context: &Context) -> Result<SiteSecretData, KubernetesError> {
    let needed = context.config.current().lab.needed_secrets();
    let names: BTreeSet<_> = needed.into_iter().map(|key| key.name).collect();
    let secrets = try_join_all(names.into_iter().map(async |name| {
        let values = context.secrets.read(name.as_str()).await?;
        Ok::<_, KubernetesError>(
            values
                .into_iter()
                .map(move |(key, value)| (SecretKey { name: name.clone(), key }, SecretBytes::new(value.0))),
        )
    }));
    Ok(secrets.await?.into_iter().flatten().collect())
}
