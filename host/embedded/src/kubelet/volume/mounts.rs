//! Where a container's mount paths are on this machine.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use k8s_openapi::api::core::v1::Container;

use super::{MountError, plan::relative};
use crate::kubelet::env::expand;

/// The mounts of one container: path in the pod -> directory or file of the machine.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Mounts {
    by_path: BTreeMap<PathBuf, PathBuf>,
    by_volume: BTreeMap<String, PathBuf>,
}

impl Mounts {
    /// The mounts of a container whose pod has these volume directories. `subPathExpr` sees the environment.
    pub(crate) fn of(
        container: &Container,
        volumes: &BTreeMap<String, PathBuf>,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, MountError> {
        let mut mounts = Self::default();
        for mount in container.volume_mounts.iter().flatten() {
            let Some(directory) = volumes.get(&mount.name) else { continue };
            let sub_path = match (&mount.sub_path, &mount.sub_path_expr) {
                (Some(path), _) => Some(path.clone()),
                (None, Some(template)) => Some(expand(template, |name| env.get(name).map(String::as_str))),
                (None, None) => None,
            };
            let host = match sub_path.filter(|path| !path.is_empty()) {
                Some(path) => directory.join(relative(&path)?),
                None => directory.clone(),
            };
            mounts.by_volume.entry(mount.name.clone()).or_insert_with(|| host.clone());
            mounts.by_path.insert(normal(Path::new(&mount.mount_path)), host);
        }
        Ok(mounts)
    }

    /// A pod's path on this machine: below the deepest mount that covers it, or `None`.
    pub(crate) fn translate(&self, path: &Path) -> Option<PathBuf> {
        let path = normal(path);
        path.ancestors().find_map(|ancestor| {
            let host = self.by_path.get(ancestor)?;
            let rest = path.strip_prefix(ancestor).ok()?;
            Some(if rest.as_os_str().is_empty() { host.clone() } else { host.join(rest) })
        })
    }

    /// Every mounted directory or file of the machine.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Path> {
        self.by_path.values().map(PathBuf::as_path)
    }

    /// `WASMSPAWNER_MOUNT_<VOLUME>` for each mounted volume: upper case, other characters than letters and digits as `_`.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let name = |volume: &str| {
            let upper = volume.to_ascii_uppercase();
            format!("WASMSPAWNER_MOUNT_{}", upper.replace(|c: char| !c.is_ascii_alphanumeric(), "_"))
        };
        self.by_volume
            .iter()
            .map(|(volume, path)| (name(volume), path.to_string_lossy().into_owned()))
            .collect()
    }
}

/// Without `.`, `..` and trailing slashes, so that a path cannot climb out of its mount.
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

    fn mounts() -> Mounts {
        let container = serde_json::from_value(json!({"name": "notebook", "volumeMounts": [
            {"name": "home", "mountPath": "/home/alice/"},
            {"name": "shared-data", "mountPath": "/home/alice/shared", "subPath": "pub"},
            {"name": "shared-data", "mountPath": "/mine", "subPathExpr": "of-$(USER)"},
            {"name": "unknown", "mountPath": "/x"},
        ]}))
        .unwrap();
        let volumes = [("home", "/s/home"), ("shared-data", "/s/data")];
        let volumes = volumes.map(|(name, path)| (name.to_owned(), PathBuf::from(path))).into();
        Mounts::of(&container, &volumes, &[("USER".to_owned(), "alice".to_owned())].into()).unwrap()
    }

    #[test]
    fn the_deepest_mount_wins() {
        for (path, expect) in [
            ("/home/alice", Some("/s/home")),
            ("/home/alice/work/x.ipynb", Some("/s/home/work/x.ipynb")),
            ("/home/alice/shared", Some("/s/data/pub")),
            ("/home/alice/shared/y", Some("/s/data/pub/y")),
            ("/mine/", Some("/s/data/of-alice")),
            ("/home/alice/shared/../../..", None),
            ("/home/bob", None),
            ("/", None),
        ] {
            assert_eq!(mounts().translate(Path::new(path)), expect.map(PathBuf::from), "{path}");
        }
    }

    #[test]
    fn variables_name_the_volume() {
        let variables: Vec<_> = mounts().variables().into_iter().collect();
        let expect =
            [("WASMSPAWNER_MOUNT_HOME", "/s/home"), ("WASMSPAWNER_MOUNT_SHARED_DATA", "/s/data/pub")];
        assert_eq!(variables, expect.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }

    #[test]
    fn a_sub_path_stays_inside() {
        let container =
            json!({"name": "n", "volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "../other"}]});
        let volumes = [("v".to_owned(), PathBuf::from("/s/v"))].into();
        let mounts = Mounts::of(&serde_json::from_value(container).unwrap(), &volumes, &BTreeMap::new());
        assert!(mounts.unwrap_err().to_string().contains("../other"));
    }
}
