//! Detects changes of the files from which policies are loaded.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::spec::PolicySpec;

/// The state of the files at the last check.
#[derive(Debug, Default)]
pub(crate) struct WatchedFiles {
    /// The state when the policies were last loaded from the files.
    loaded: BTreeMap<PathBuf, Look>,
    /// The state at the last check, if it differs.
    changing: Option<BTreeMap<PathBuf, Look>>,
}

/// The state of a file, or of a folder of files, to detect changes. The stamp is `None` if the file does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look(Vec<(PathBuf, Option<Stamp>)>);

/// Metadata that changes with the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    /// The time of the last write: seconds and nanoseconds.
    written: (i64, i64),
}

impl WatchedFiles {
    /// Returns the files of these policies in their current state.
    pub(crate) fn from_policies(policies: &[PolicySpec]) -> Self {
        let paths = policies.iter().flat_map(PolicySpec::files);
        let loaded = paths.map(|path| (path.clone(), Look::at(&path))).collect();
        Self { loaded, changing: None }
    }

    /// Checks the files. Returns true if they have changed since the policies were loaded, and not since the previous
    /// check: files that are still being written are not read. Each change is reported once.
    pub(crate) fn look(&mut self) -> bool {
        let now: BTreeMap<_, _> = self.loaded.keys().map(|path| (path.clone(), Look::at(path))).collect();
        if now == self.loaded {
            self.changing = None;
            return false;
        }
        if self.changing.as_ref() != Some(&now) {
            self.changing = Some(now);
            return false;
        }
        (self.loaded, self.changing) = (now, None);
        true
    }
}

impl Look {
    fn at(path: &Path) -> Self {
        let stamp = |path: PathBuf| {
            let stamp = path.metadata().ok().as_ref().map(Stamp::from);
            (path, stamp)
        };
        let Ok(entries) = path.read_dir() else { return Self(vec![stamp(path.to_owned())]) };
        let mut files: Vec<_> = entries.flatten().map(|entry| stamp(entry.path())).collect();
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self(files)
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use wasmspawner_core::config::DataSource;

    use super::*;

    #[test]
    fn a_change_is_told_once_and_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.wasm");
        fs::write(&file, "one").unwrap();
        let mut watched = WatchedFiles::from_policies(&[PolicySpec::new("site", &file)]);
        assert!(!watched.look());
        fs::write(&file, "tw").unwrap();
        assert!(!watched.look(), "it may still be written");
        fs::write(&file, "two and more").unwrap();
        assert!(!watched.look(), "it was still being written");
        assert!(watched.look());
        assert!(!watched.look());
        fs::remove_file(&file).unwrap();
        assert_eq!([watched.look(), watched.look(), watched.look()], [false, true, false]);
    }

    #[test]
    fn folders_data_and_mounts_of_config_maps_are_watched() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for version in ["..1", "..2"] {
            fs::create_dir(at(version)).unwrap();
            fs::write(at(version).join("teams.yaml"), version).unwrap();
        }
        symlink("..1", at("..data")).unwrap();
        symlink("..data/teams.yaml", at("teams.yaml")).unwrap();
        fs::create_dir(at("policies")).unwrap();
        let mut site = PolicySpec::new("site", at("policies"));
        site.data.insert("teams".to_owned(), DataSource::File(at("teams.yaml")));
        let mut watched = WatchedFiles::from_policies(&[site]);
        assert!(!watched.look());
        symlink("..2", at("new")).unwrap();
        fs::rename(at("new"), at("..data")).unwrap();
        assert_eq!([watched.look(), watched.look()], [false, true]);
        fs::write(at("policies/site.wasm"), "").unwrap();
        assert_eq!([watched.look(), watched.look()], [false, true]);
    }
}
