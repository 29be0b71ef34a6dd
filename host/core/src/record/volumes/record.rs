//! The remembered volume claims of one server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::lab::LabKey;
use crate::names::{KeptNames, NamespaceName, ObjectName};
use crate::policy::{ClaimReclaim, ValidatedSpawn, VolumeSource};
use crate::values::digest::Digest;

/// A claim that a server has used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ClaimUse {
    /// The claim's namespace.
    pub namespace: NamespaceName,
    /// The claim's name.
    pub name: ObjectName,
    /// What the policy last decided about the claim's deletion. A claim that no policy would create is retained.
    pub reclaim: ClaimReclaim,
}

/// The remembered volume claims of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeRecord {
    /// The server.
    #[serde(flatten)]
    pub key: LabKey,
    /// The namespace of the server's own claim.
    pub namespace: NamespaceName,
    /// The value of `{pvc_name}` for this server.
    pub pvc: ObjectName,
    /// All claims that the server has used, sorted.
    pub claims: Vec<ClaimUse>,
}

impl VolumeRecord {
    /// Returns the record of a lab's claims; `None` if the lab has no claims.
    pub fn from_spawn(spawn: &ValidatedSpawn) -> Option<Self> {
        let claims = spawn.volumes.iter().filter_map(|volume| match &volume.source {
            VolumeSource::Claim(claim) => Some(ClaimUse {
                namespace: spawn.names.namespace.clone(),
                // The name was checked together with the policy's answer.
                name: ObjectName::parse(claim.claim_name.as_str()).ok()?,
                reclaim: claim.create.as_ref().map(|create| create.reclaim).unwrap_or_default(),
            }),
            _ => None,
        });
        let mut record = Self {
            key: spawn.key.clone(),
            namespace: spawn.names.namespace.clone(),
            pvc: spawn.names.pvc.clone(),
            claims: Vec::new(),
        };
        claims.for_each(|claim| record.add(claim));
        (!record.claims.is_empty()).then_some(record)
    }

    /// Returns the key under which a server's record is stored: a digest of the server's name, which is unique and does
    /// not depend on the configuration.
    pub fn record_key(key: &LabKey) -> String {
        let names = [key.user.as_str(), key.server.as_str()].map(str::as_bytes).join(&0xff);
        Digest::sha256(&names).short_hex(32)
    }

    /// Returns the names that the server keeps.
    pub fn kept_names(&self) -> KeptNames {
        KeptNames { namespace: Some(self.namespace.clone()), pvc: Some(self.pvc.clone()) }
    }

    /// Adds the claims that the server used `before`.
    #[must_use]
    pub fn after(mut self, before: Option<&Self>) -> Self {
        for claim in before.iter().flat_map(|before| &before.claims) {
            if !self.uses(claim) {
                self.add(claim.clone());
            }
        }
        self
    }

    /// Returns true if the server has used the claim.
    pub fn uses(&self, claim: &ClaimUse) -> bool {
        self.claims.iter().any(|ours| ours.namespace == claim.namespace && ours.name == claim.name)
    }

    /// Adds a claim. If two volumes of a lab are the same claim, it is retained if either of them is.
    fn add(&mut self, claim: ClaimUse) {
        let same = |ours: &&mut ClaimUse| ours.namespace == claim.namespace && ours.name == claim.name;
        if let Some(ours) = self.claims.iter_mut().find(same) {
            ours.reclaim = ours.reclaim.min(claim.reclaim);
        } else {
            self.claims.push(claim);
            self.claims.sort();
        }
    }
}
