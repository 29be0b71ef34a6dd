//! The volume claims of servers: stored in the cluster, cached here, and deleted with their server.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::{KeptNames, LabNames, LabelValue, NameTemplates, ObjectName};
use wasmspawner_core::record::INSTANCE_LABEL;
use wasmspawner_core::record::volumes::{ClaimUse, Release, RememberedVolumes, VolumeRecord, owner};

use wasmspawner_kubernetes::k8s::{Claims, ConfigMapRecords, KubernetesError};

/// The volume claims of servers. Used only where namespaces are kept; elsewhere claims are deleted with their lab.
#[derive(Clone)]
pub struct Volumes {
    records: ConfigMapRecords,
    claims: Claims,
    instance: LabelValue,
    remembered: Arc<RwLock<RememberedVolumes>>,
    /// Servers for which the cluster was searched and had no claim.
    unclaimed: Arc<Mutex<HashSet<LabKey>>>,
    /// Locked for reading while a server begins to use claims, and for writing while claims are deleted. Otherwise a
    /// claim that two servers share could be deleted after the check, while the other server starts.
    order: Arc<tokio::sync::RwLock<()>>,
}

/// The result of searching the cluster for a server's own claim, under the names that it could have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnClaim {
    /// No claim that prevents the use of the name that the templates give now.
    Today,
    /// A claim of an older KubeSpawner with the user's data, and none with the name that the templates give now.
    Legacy(ObjectName),
    /// A claim with the name that the templates give now, whose annotation names another user.
    OfAnother(String),
}

impl Volumes {
    /// The volumes stored in `records`. `claims` is used to look for claims and to delete those of this installation.
    pub fn new(records: ConfigMapRecords, claims: Claims, instance: LabelValue) -> Self {
        Self {
            records,
            claims,
            instance,
            remembered: Arc::default(),
            unclaimed: Arc::default(),
            order: Arc::default(),
        }
    }

    /// Reads the stored volumes. No lab may start before that, because it would get an empty volume.
    pub(crate) async fn load(&self) -> Result<(), KubernetesError> {
        for (record_key, text) in self.records.all().await? {
            match serde_json::from_str(&text) {
                Ok(record) => self.change(|remembered| remembered.remember(record)),
                Err(error) => {
                    tracing::error!(record_key, %error, "a record of volumes cannot be read; its server gets the names of today's templates");
                }
            }
        }
        Ok(())
    }

    /// The stored volumes of a server.
    pub(crate) fn record(&self, key: &LabKey) -> Option<VolumeRecord> {
        self.remembered.read().unwrap_or_else(PoisonError::into_inner).record(key).cloned()
    }

    /// The stored volumes of all servers.
    pub(crate) fn all(&self) -> Vec<VolumeRecord> {
        self.remembered.read().unwrap_or_else(PoisonError::into_inner).all().cloned().collect()
    }

    /// The names that a server keeps from its earlier labs.
    pub(crate) fn kept_names(&self, key: &LabKey) -> KeptNames {
        self.record(key).map(|record| record.kept_names()).unwrap_or_default()
    }

    /// Searches the cluster for the claim of a server that has no stored volumes.
    pub(crate) async fn own_claim(
        &self,
        key: &LabKey,
        names: &LabNames,
        templates: &NameTemplates,
    ) -> Result<OwnClaim, KubernetesError> {
        if self.record(key).is_some() || templates.shares_pvc() || self.unclaimed().contains(key) {
            return Ok(OwnClaim::Today);
        }
        let foreign =
            |owner: Option<&str>| owner.filter(|owner| *owner != key.user.as_str()).map(str::to_owned);
        if let Some(claim) = self.claims.find(names.namespace.as_str(), names.pvc.as_str()).await? {
            return Ok(foreign(owner(&claim)).map_or(OwnClaim::Today, OwnClaim::OfAnother));
        }
        if let Some(legacy) = templates.legacy_pvc(names).filter(|_| templates.remembers_pvc())
            && let Some(claim) = self.claims.find(names.namespace.as_str(), legacy.as_str()).await?
            && foreign(owner(&claim)).is_none()
        {
            return Ok(OwnClaim::Legacy(legacy));
        }
        self.unclaimed().insert(key.clone());
        Ok(OwnClaim::Today)
    }

    /// Stores which claims a lab will use. Called before the lab uses them.
    pub(crate) async fn remember(&self, record: VolumeRecord) -> Result<(), KubernetesError> {
        let _beginning = self.order.read().await;
        let before = self.record(&record.key);
        let record = record.after(before.as_ref());
        if before.as_ref() == Some(&record) {
            return Ok(());
        }
        self.write(&record).await?;
        self.change(|remembered| remembered.remember(record));
        Ok(())
    }

    /// Deletes the claims of a server that is being deleted, except those that have to be kept, and removes its record.
    pub(crate) async fn release(&self, key: &LabKey) -> Result<Release, KubernetesError> {
        let _alone = self.order.write().await;
        let Some(record) = self.record(key) else { return Ok(Release::default()) };
        let mut release = self.remembered.read().unwrap_or_else(PoisonError::into_inner).release(key);
        release.delete = self.without_claims_of_others(key, release.delete).await?;
        for claim in &release.delete {
            self.claims.delete(claim.namespace.as_str(), claim.name.as_str()).await?;
        }
        if let Some(left) = release.record_after_release(&record) {
            self.write(&left).await?;
            self.change(|remembered| remembered.remember(left));
        } else {
            self.records.remove(&VolumeRecord::record_key(key)).await?;
            self.change(|remembered| remembered.forget(key));
        }
        self.unclaimed().remove(key);
        Ok(release)
    }

    /// Leaves out the claims that name another user, or another installation of the service. A record is written before
    /// its claims are looked at, so it may have claims that the server has never got.
    async fn without_claims_of_others(
        &self,
        key: &LabKey,
        claims: Vec<ClaimUse>,
    ) -> Result<Vec<ClaimUse>, KubernetesError> {
        let mut own = Vec::new();
        for claim in claims {
            let found = self.claims.find(claim.namespace.as_str(), claim.name.as_str()).await?;
            let labels = found.as_ref().and_then(|found| found.labels.as_ref());
            let instance = labels.and_then(|labels| labels.get(INSTANCE_LABEL));
            if let Some(instance) = instance.filter(|instance| *instance != self.instance.as_str()) {
                tracing::warn!(namespace = %claim.namespace, claim = %claim.name, instance, "a volume claim of another installation is not deleted");
                continue;
            }
            match found.as_ref().and_then(owner).filter(|owner| *owner != key.user.as_str()) {
                None => own.push(claim),
                Some(owner) => {
                    tracing::warn!(namespace = %claim.namespace, claim = %claim.name, owner, user = %key.user, "a volume claim of another user is not deleted");
                }
            }
        }
        Ok(own)
    }

    async fn write(&self, record: &VolumeRecord) -> Result<(), KubernetesError> {
        let text = serde_json::to_string(record).map_err(|error| KubernetesError::Malformed(error.into()))?;
        self.records.set(&VolumeRecord::record_key(&record.key), &text).await
    }

    fn change(&self, change: impl FnOnce(&mut RememberedVolumes)) {
        change(&mut self.remembered.write().unwrap_or_else(PoisonError::into_inner));
    }

    fn unclaimed(&self) -> std::sync::MutexGuard<'_, HashSet<LabKey>> {
        self.unclaimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
