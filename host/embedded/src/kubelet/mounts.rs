//! The places of a container's mount paths on this machine.
//!
//! There is no mount namespace: a volume is a directory of the machine, and its path is in the environment of the
//! process.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::Container;

use super::volume::relative;

/// The mounts of one container: path in the pod -> directory or file of the machine.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Mounts {
    by_path: BTreeMap<PathBuf, PathBuf>,
    by_volume: BTreeMap<String, PathBuf>,
}

impl Mounts {
    /// Collects the mounts of a container whose pod has these volume directories.
    pub(crate) fn from_container(
        container: &Container,
        volumes: &BTreeMap<String, PathBuf>,
    ) -> Result<Self, String> {
        let mut mounts = Self::default();
        for mount in container.volume_mounts.iter().flatten() {
            let Some(directory) = volumes.get(&mount.name) else { continue };
            let host = match mount.sub_path.as_deref().filter(|path| !path.is_empty()) {
                Some(path) => directory.join(relative(path)?),
                None => directory.clone(),
            };
            mounts.by_volume.entry(mount.name.clone()).or_insert_with(|| host.clone());
            mounts.by_path.insert(normal(Path::new(&mount.mount_path)), host);
        }
        Ok(mounts)
    }

    /// Translates a path of the pod into one of this machine, below the deepest mount that covers it. `None` if no
    /// mount does.
    pub(crate) fn translate(&self, path: &Path) -> Option<PathBuf> {
        let path = normal(path);
        path.ancestors().find_map(|ancestor| {
            let host = self.by_path.get(ancestor)?;
            let rest = path.strip_prefix(ancestor).ok()?;
            Some(if rest.as_os_str().is_empty() { host.clone() } else { host.join(rest) })
        })
    }

    /// Returns every mounted directory or file of the machine.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Path> {
        self.by_path.values().map(PathBuf::as_path)
    }

    /// Returns the variable `WASMSPAWNER_MOUNT_<VOLUME>` for each mounted volume. The volume's name is in upper case,
    /// with `_` for all characters except letters and digits.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let name = |volume: &str| {
            let upper = volume.to_ascii_uppercase();
            format!("WASMSPAWNER_MOUNT_{}", upper.replace(|c: char| !c.is_ascii_alphanumeric(), "_"))
        };
        let variable = |(volume, path): (&String, &PathBuf)| (name(volume), path.to_string_lossy().into());
        self.by_volume.iter().map(variable).collect()
    }
}

/// Removes `.`, `..` and trailing slashes, so that a path cannot leave its mount.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_deepest_mount_wins_and_sub_paths_stay_inside() {
        let mounts = |mounts: serde_json::Value| {
            let container = serde_json::from_value(json!({"name": "n", "volumeMounts": mounts})).unwrap();
            let volumes = [("home", "/s/home"), ("shared-data", "/s/data")];
            let volumes = volumes.map(|(name, path)| (name.to_owned(), PathBuf::from(path)));
            Mounts::from_container(&container, &volumes.into())
        };
        let two = mounts(json!([
            {"name": "home", "mountPath": "/home/alice/"},
            {"name": "shared-data", "mountPath": "/home/alice/shared", "subPath": "pub"},
        ]))
        .unwrap();
        for (path, expect) in [
            ("/home/alice", Some("/s/home")),
            ("/home/alice/work/x.ipynb", Some("/s/home/work/x.ipynb")),
            ("/home/alice/shared/y", Some("/s/data/pub/y")),
            ("/home/alice/shared/../../..", None),
            ("/home/bob", None),
        ] {
            assert_eq!(two.translate(Path::new(path)), expect.map(PathBuf::from), "{path}");
        }
        assert_eq!(two.variables()["WASMSPAWNER_MOUNT_SHARED_DATA"], "/s/data/pub");
        let escaping = mounts(json!([{"name": "home", "mountPath": "/x", "subPath": "../other"}]));
        assert!(escaping.unwrap_err().contains("../other"));
    }
}
