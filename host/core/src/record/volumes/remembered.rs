//! The remembered volume claims of all servers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::record::{ClaimUse, VolumeRecord};
use crate::names::lab::LabKey;
use crate::policy::ClaimReclaim;

/// The remembered claims of every server that has ever had any.
#[derive(Debug, Clone, Default)]
pub struct RememberedVolumes {
    records: BTreeMap<LabKey, VolumeRecord>,
}

/// The fate of a server's claims when the server is deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// The claims to delete.
    pub delete: Vec<ClaimUse>,
    /// The claims to keep, each with the reason.
    pub keep: Vec<(ClaimUse, Kept)>,
}

/// Why a claim is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// No policy wants it to be deleted.
    Retained,
    /// Another server uses it.
    UsedBy(LabKey),
}

impl RememberedVolumes {
    /// Returns the record of a server.
    pub fn record(&self, key: &LabKey) -> Option<&VolumeRecord> {
        self.records.get(key)
    }

    /// Returns the records of all servers.
    pub fn all(&self) -> impl Iterator<Item = &VolumeRecord> {
        self.records.values()
    }

    /// Adds or replaces a server's record.
    pub fn remember(&mut self, record: VolumeRecord) {
        self.records.insert(record.key.clone(), record);
    }

    /// Removes a server's record.
    pub fn forget(&mut self, key: &LabKey) {
        self.records.remove(key);
    }

    /// Decides on the claims of a server that is deleted. A claim is deleted with the server if a policy requests that
    /// and no other server of any user has used it. Retained claims stay in the record, so that a server of the same
    /// name finds them again.
    pub fn release(&self, key: &LabKey) -> Release {
        let mut release = Release::default();
        for claim in self.record(key).iter().flat_map(|record| &record.claims).cloned() {
            let other = self.records.values().find(|other| other.key != *key && other.uses(&claim));
            match (other, claim.reclaim) {
                (Some(other), _) => release.keep.push((claim, Kept::UsedBy(other.key.clone()))),
                (None, ClaimReclaim::Retain) => release.keep.push((claim, Kept::Retained)),
                (None, ClaimReclaim::Delete) => release.delete.push(claim),
            }
        }
        release
    }
}

impl Release {
    /// Returns the record of the server after the deletion; `None` if no claim is left.
    pub fn record_after_release(&self, record: &VolumeRecord) -> Option<VolumeRecord> {
        let retained = self.keep.iter().filter(|(_, kept)| *kept == Kept::Retained);
        let claims: Vec<_> = retained.map(|(claim, _)| claim.clone()).collect();
        (!claims.is_empty()).then(|| VolumeRecord { claims, ..record.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{NamespaceName, ObjectName, ServerName, Username};

    fn key(user: &str, server: &str) -> LabKey {
        LabKey::new(Username::parse(user).unwrap(), ServerName::parse(server).unwrap())
    }

    fn claim(name: &str, reclaim: ClaimReclaim) -> ClaimUse {
        let namespace = NamespaceName::parse("jhub").unwrap();
        ClaimUse { namespace, name: ObjectName::parse(name).unwrap(), reclaim }
    }

    fn record(user: &str, server: &str, claims: &[ClaimUse]) -> VolumeRecord {
        VolumeRecord {
            key: key(user, server),
            namespace: NamespaceName::parse("jhub").unwrap(),
            pvc: claims[0].name.clone(),
            claims: claims.to_vec(),
        }
    }

    #[test]
    fn a_claim_is_deleted_with_the_last_server_that_used_it() {
        let (home, own) = (claim("claim-ada", ClaimReclaim::Delete), claim("ada-gpu", ClaimReclaim::Delete));
        let mut volumes = RememberedVolumes::default();
        volumes.remember(record("ada", "", std::slice::from_ref(&home)));
        volumes.remember(record("ada", "gpu", &[home.clone(), own.clone()]));

        let release = volumes.release(&key("ada", "gpu"));
        assert_eq!(release.delete, [own]);
        assert_eq!(release.record_after_release(volumes.record(&key("ada", "gpu")).unwrap()), None);
        assert_eq!(release.keep, [(home.clone(), Kept::UsedBy(key("ada", "")))]);
        volumes.forget(&key("ada", "gpu"));
        assert_eq!(volumes.release(&key("ada", "")).delete, [home]);
    }

    #[test]
    fn a_claim_that_another_user_uses_is_kept() {
        let team = claim("team", ClaimReclaim::Delete);
        let mut volumes = RememberedVolumes::default();
        volumes.remember(record("ada", "", std::slice::from_ref(&team)));
        volumes.remember(record("grace", "", std::slice::from_ref(&team)));
        assert_eq!(volumes.release(&key("ada", "")).keep, [(team, Kept::UsedBy(key("grace", "")))]);
    }

    #[test]
    fn a_claim_with_retain_is_kept_and_remembered() {
        let home = claim("claim-ada", ClaimReclaim::Retain);
        let mut volumes = RememberedVolumes::default();
        volumes.remember(record("ada", "", std::slice::from_ref(&home)));
        let release = volumes.release(&key("ada", ""));
        assert_eq!(release.keep, [(home, Kept::Retained)]);
        let record = volumes.record(&key("ada", "")).unwrap();
        assert_eq!(release.record_after_release(record).as_ref(), Some(record));
        assert_eq!(volumes.release(&key("grace", "")), Release::default());
    }

    #[test]
    fn claims_that_a_server_used_before_are_still_remembered() {
        let (home, scratch) = (claim("home", ClaimReclaim::Delete), claim("scratch", ClaimReclaim::Delete));
        let before = record("ada", "", &[home.clone(), scratch.clone()]);
        let retained = claim("home", ClaimReclaim::Retain);
        let now = record("ada", "", std::slice::from_ref(&retained)).after(Some(&before));
        assert_eq!(now.claims, [retained, scratch]);
    }
}
