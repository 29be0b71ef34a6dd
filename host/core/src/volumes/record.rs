//! What is written down of one server's volume claims.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::lab::LabKey;
use crate::names::{KeptNames, NamespaceName, ObjectName};
use crate::policy::{ClaimReclaim, ValidatedSpawn, VolumeSource};

/// A claim that a server has used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ClaimUse {
    /// Where the claim is.
    pub namespace: NamespaceName,
    /// Its name.
    pub name: ObjectName,
    /// What a policy said last about its end. A claim that no policy would create is retained.
    pub reclaim: ClaimReclaim,
}

/// What is written down of one server's volume claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeRecord {
    /// Whose.
    #[serde(flatten)]
    pub key: LabKey,
    /// Where the server's own claim is.
    pub namespace: NamespaceName,
    /// What `{pvc_name}` is for this server.
    pub pvc: ObjectName,
    /// Every claim that the server has used, sorted.
    pub claims: Vec<ClaimUse>,
}

impl VolumeRecord {
    /// The claims of a lab; nothing when it has none.
    pub fn of(spawn: &ValidatedSpawn) -> Option<Self> {
        let claims = spawn.volumes.iter().filter_map(|volume| match &volume.source {
            VolumeSource::Claim(claim) => Some(ClaimUse {
                namespace: spawn.names.namespace.clone(),
                // Checked with the policy's answer.
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

    /// Under which key a server's record is kept: the digest of its name, which no two servers share and no
    /// configuration changes.
    pub fn record_key(key: &LabKey) -> String {
        let mut digest = Sha256::new();
        digest.update(key.user.as_str());
        digest.update([0xff]);
        digest.update(key.server.as_str());
        digest.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// The names that the server keeps.
    pub fn kept_names(&self) -> KeptNames {
        KeptNames { namespace: Some(self.namespace.clone()), pvc: Some(self.pvc.clone()) }
    }

    /// The same, knowing also what the server used `before`.
    #[must_use]
    pub fn after(mut self, before: Option<&Self>) -> Self {
        for claim in before.iter().flat_map(|before| &before.claims) {
            if !self.uses(claim) {
                self.add(claim.clone());
            }
        }
        self
    }

    /// True if the server has used the claim.
    pub fn uses(&self, claim: &ClaimUse) -> bool {
        self.claims.iter().any(|ours| ours.namespace == claim.namespace && ours.name == claim.name)
    }

    /// Two volumes of a lab may be the same claim: then it stays if either wants that.
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
