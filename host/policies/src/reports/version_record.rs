//! Records of the current and the last good version of each policy. `on_failure: last-good` needs them after a restart,
//! because a changed configuration often restarts the service.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wasmspawner_core::config::DataSource;

use crate::names::policy_name::PolicyName;
use wasmspawner_core::values::digest::Digest;
use wasmspawner_files::whole_file;

/// The record of one policy.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct VersionRecord {
    pub(crate) policy: String,
    pub(crate) in_use: Version,
    /// True if the version in use has failed, and so is not a good one.
    pub(crate) failed: bool,
    /// The version that answers if the one in use fails.
    pub(crate) last_good: Option<Version>,
}

/// A version of a policy. Grants and limits are not a part of it, because the current ones always apply.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) component: Digest,
    pub(crate) config: Value,
    pub(crate) data: BTreeMap<String, DataSource>,
    /// The digest of the public key that signed the component.
    pub(crate) key: Option<Digest>,
}

impl Version {
    /// Returns true for the same component with the same configuration and data, whoever signed it.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.component, &self.config, &self.data) == (&other.component, &other.config, &other.data)
    }
}

/// The predecessor of a version, in memory or in a record.
pub(crate) struct Predecessor<T> {
    pub(crate) in_use: T,
    /// True if the version in use has failed.
    pub(crate) failed: bool,
    pub(crate) last_good: Option<T>,
}

impl<T> Predecessor<T> {
    /// Returns the version that answers if the next one fails: the predecessor, or its own last good version. `is_next`
    /// returns true for the next version itself.
    pub(crate) fn last_good_for(self, is_next: impl Fn(&T) -> bool) -> Option<T> {
        let good = if is_next(&self.in_use) {
            self.last_good
        } else if self.failed {
            self.last_good.or(Some(self.in_use))
        } else {
            Some(self.in_use)
        };
        // If a version replaces itself, calling it twice is of no use.
        good.filter(|good| !is_next(good))
    }
}

impl VersionRecord {
    /// Returns the version that answers if `next` fails, if `next` replaces the recorded version.
    pub(crate) fn last_good_for(self, next: &Version) -> Option<Version> {
        let Self { in_use, failed, last_good, policy: _ } = self;
        Predecessor { in_use, failed, last_good }.last_good_for(|version| version.is_like(next))
    }
}

/// The folder with the records and the components that they name.
#[derive(Debug)]
pub(crate) struct VersionRecords {
    folder: PathBuf,
    /// Held while a record is changed.
    changing: Mutex<()>,
}

impl VersionRecords {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, changing: Mutex::default() }
    }

    /// Returns the record of a policy, if there is one.
    pub(crate) fn record(&self, policy: &PolicyName) -> Option<VersionRecord> {
        read(&self.file(policy.as_str()))
    }

    /// Returns the component of a version, if the file exists and has not been changed.
    pub(crate) fn component(&self, version: &Version) -> Option<Bytes> {
        let component = std::fs::read(self.component_file(&version.component)).ok()?;
        (Digest::sha256(&component) == version.component).then(|| component.into())
    }

    /// Replaces all records with these. Each comes with the component that is in use.
    pub(crate) fn replace(&self, records: &[(VersionRecord, Bytes)]) -> io::Result<()> {
        let _changing = self.lock();
        if records.is_empty() && !self.folder.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.folder)?;
        for (record, component) in records {
            if self.component(&record.in_use).is_none() {
                whole_file::write(&self.component_file(&record.in_use.component), component)?;
            }
            let file = self.file(&record.policy);
            if read(&file).as_ref() != Some(record) {
                write(&file, record)?;
            }
        }
        self.remove_others(records)
    }

    /// Removes files that belong to none of these records.
    fn remove_others(&self, records: &[(VersionRecord, Bytes)]) -> io::Result<()> {
        let versions = records
            .iter()
            .flat_map(|(record, _)| [Some(&record.in_use), record.last_good.as_ref()].into_iter().flatten());
        let needed: BTreeSet<PathBuf> = versions
            .map(|version| self.component_file(&version.component))
            .chain(records.iter().map(|(record, _)| self.file(&record.policy)))
            .collect();
        for entry in self.folder.read_dir()? {
            let file = entry?.path();
            if !needed.contains(&file) {
                std::fs::remove_file(file)?;
            }
        }
        Ok(())
    }

    /// Records that a version has failed, unless that version is no longer in use.
    fn note_failure(&self, policy: &PolicyName, version: &Version) -> io::Result<()> {
        let _changing = self.lock();
        let file = self.file(policy.as_str());
        match read(&file) {
            Some(record) if record.in_use.is_like(version) && !record.failed => {
                write(&file, &VersionRecord { failed: true, ..record })
            }
            _ => Ok(()),
        }
    }

    /// Records the failure in the background, so that the caller does not wait.
    pub(crate) fn note_failure_soon(self: Arc<Self>, policy: PolicyName, version: Version) {
        tokio::task::spawn_blocking(move || {
            if let Err(error) = self.note_failure(&policy, &version) {
                tracing::warn!(%policy, %error, "a restart will not know that this version of the policy has failed");
            }
        });
    }

    fn lock(&self) -> impl Drop {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, policy: &str) -> PathBuf {
        self.folder.join(format!("{}.json", Digest::sha256(policy.as_bytes()).hex()))
    }

    pub(crate) fn component_file(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{}.wasm", digest.hex()))
    }
}

fn read(file: &Path) -> Option<VersionRecord> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

fn write(file: &Path, record: &VersionRecord) -> io::Result<()> {
    whole_file::write(file, &serde_json::to_vec(record)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(number: u8) -> Version {
        Version { component: Digest::sha256(&[number]), config: json!({}), data: BTreeMap::new(), key: None }
    }

    fn record(in_use: u8, failed: bool, last_good: Option<u8>) -> VersionRecord {
        let policy = "site".to_owned();
        VersionRecord { policy, in_use: version(in_use), failed, last_good: last_good.map(version) }
    }

    #[test]
    fn the_last_version_that_has_not_failed_is_the_good_one() {
        for (in_use, failed, last_good, next, expected) in [
            (1, false, None, 1, None),
            (1, true, None, 1, None),
            (1, false, None, 2, Some(1)),
            (1, false, Some(0), 1, Some(0)),
            (1, false, Some(0), 2, Some(1)),
            (1, true, Some(0), 2, Some(0)),
            (1, true, Some(2), 2, None),
            // A version that has failed once is better than none.
            (1, true, None, 2, Some(1)),
        ] {
            let found = record(in_use, failed, last_good).last_good_for(&version(next));
            assert!(found == expected.map(version), "{in_use} {failed} {last_good:?} {next}");
        }
    }

    #[test]
    fn nothing_is_left_of_what_is_not_recorded_and_a_damaged_component_is_mended() {
        let folder = tempfile::tempdir().unwrap();
        let records = VersionRecords::new(folder.path().join("versions"));
        let files = || folder.path().join("versions").read_dir().unwrap().count();
        records.replace(&[]).unwrap();
        let bytes = |number: u8| Bytes::from(vec![number]);
        records.replace(&[(record(1, false, None), bytes(1))]).unwrap();
        let other = VersionRecord { policy: "other".to_owned(), ..record(3, false, None) };
        records.replace(&[(record(2, false, Some(1)), bytes(2)), (other, bytes(3))]).unwrap();
        assert_eq!(files(), 5, "two records and three components");
        let damaged = records.component_file(&version(2).component);
        std::fs::write(&damaged, "damaged").unwrap();
        std::fs::write(damaged.with_extension("tmp"), "unfinished").unwrap();
        assert!(records.component(&version(2)).is_none());
        records.replace(&[(record(2, false, Some(1)), bytes(2))]).unwrap();
        assert_eq!(records.component(&version(2)).unwrap(), bytes(2));
        assert_eq!(files(), 3);
        records.replace(&[]).unwrap();
        assert_eq!(files(), 0);
    }

    #[test]
    fn a_failure_is_that_of_the_version_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let records = VersionRecords::new(folder.path().join("versions"));
        let site = PolicyName::from("site");
        records.note_failure(&site, &version(1)).unwrap();
        records.replace(&[(record(1, false, None), Bytes::from_static(&[1]))]).unwrap();
        let with_other_config = Version { config: json!({ "a": 1 }), ..version(1) };
        records.note_failure(&site, &with_other_config).unwrap();
        assert!(!records.record(&site).unwrap().failed, "it is in use no more");
        records.note_failure(&site, &version(1)).unwrap();
        assert!(records.record(&site).unwrap().failed);
    }
}
