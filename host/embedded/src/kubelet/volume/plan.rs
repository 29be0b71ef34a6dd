//! What a volume becomes on disk; decided here, written elsewhere.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use k8s_openapi::api::core::v1::{KeyToPath, Volume};
use thiserror::Error;

use crate::kubelet::env::{ConfigError, Kind, References};

/// One file of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedFile {
    /// Relative, without `..`.
    pub(crate) path: PathBuf,
    pub(crate) mode: u32,
    pub(crate) contents: Vec<u8>,
}

/// What a volume becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Materialisation {
    /// A fresh directory of the pod, kept over restarts of its containers.
    Empty,
    /// A directory of the pod with these files.
    Files(Vec<PlannedFile>),
    /// The kept directory of a claim.
    Claim(String),
    /// A directory of the machine; created when missing if `create`.
    Host { path: PathBuf, create: bool },
}

/// Why a volume cannot be mounted: shown as `FailedMount`, and tried again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum MountError {
    #[error("references non-existent config key: {key}")]
    KeyNotFound { key: String },
    #[error("path {path:?} must be relative and without '..'")]
    Path { path: String },
    #[error("{0}")]
    Reference(#[from] ConfigError),
    #[error(
        "volumes of this kind do not exist on a one-machine cluster: use an emptyDir, configMap, secret, hostPath or persistentVolumeClaim"
    )]
    Unsupported,
    #[error("hostPath type check failed: {path} is not a directory")]
    NotADirectory { path: String },
    #[error("{path}: {message}")]
    Io { path: String, message: String },
}

/// Decides what one volume becomes.
pub(crate) fn plan(volume: &Volume, references: &References) -> Result<Materialisation, MountError> {
    // A generic ephemeral volume lives as long as its pod, too.
    if volume.empty_dir.is_some() || volume.ephemeral.is_some() {
        return Ok(Materialisation::Empty);
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        return Ok(Materialisation::Claim(claim.claim_name.clone()));
    }
    if let Some(host) = &volume.host_path {
        let create = host.type_.as_deref() == Some("DirectoryOrCreate");
        return Ok(Materialisation::Host { path: PathBuf::from(&host.path), create });
    }
    let (kind, name, items, optional, mode) = match (&volume.config_map, &volume.secret) {
        (Some(map), _) => (Kind::ConfigMap, map.name.as_str(), &map.items, map.optional, map.default_mode),
        (None, Some(secret)) => {
            let name = secret.secret_name.as_deref().unwrap_or_default();
            (Kind::Secret, name, &secret.items, secret.optional, secret.default_mode)
        }
        (None, None) => return Err(MountError::Unsupported),
    };
    let entries = references.entries(kind, name, optional)?;
    let files = entries.map(|entries| select(entries, items.as_deref(), optional, mode));
    files.transpose().map(|files| Materialisation::Files(files.unwrap_or_default()))
}

/// All keys under their own names, or only the items under theirs.
fn select(
    entries: &BTreeMap<String, Vec<u8>>,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    default_mode: Option<i32>,
) -> Result<Vec<PlannedFile>, MountError> {
    let file = |path: &str, mode: Option<i32>, contents: &[u8]| {
        let mode = mode.or(default_mode).and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644) & 0o777;
        Ok(PlannedFile { path: relative(path)?, mode, contents: contents.to_vec() })
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return entries.iter().map(|(key, contents)| file(key, None, contents)).collect();
    };
    let mut files = Vec::new();
    for item in items {
        match entries.get(&item.key) {
            Some(contents) => files.push(file(&item.path, item.mode, contents)?),
            None if optional == Some(true) => {}
            None => return Err(MountError::KeyNotFound { key: item.key.clone() }),
        }
    }
    Ok(files)
}

/// A path that stays inside its volume.
pub(crate) fn relative(path: &str) -> Result<PathBuf, MountError> {
    let normal =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if normal && !path.is_empty() {
        Ok(PathBuf::from(path))
    } else {
        Err(MountError::Path { path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn planned(volume: Value) -> Result<Materialisation, MountError> {
        let mut volume = volume;
        volume["name"] = json!("v");
        let map = json!({"metadata": {"name": "nss"}, "data": {"passwd": "p", "group": "g"}, "binaryData": {"logo": "AAE="}});
        let secret = json!({"metadata": {"name": "s"}, "data": {"token": "dA=="}});
        let references = References::of(
            vec![serde_json::from_value(map).unwrap()],
            vec![serde_json::from_value(secret).unwrap()],
        );
        plan(&serde_json::from_value(volume).unwrap(), &references)
    }

    fn files(volume: Value) -> Vec<(String, u32, Vec<u8>)> {
        match planned(volume).unwrap() {
            Materialisation::Files(files) => files
                .into_iter()
                .map(|f| (f.path.to_string_lossy().into_owned(), f.mode, f.contents))
                .collect(),
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn directories() {
        assert_eq!(planned(json!({"emptyDir": {}})), Ok(Materialisation::Empty));
        assert_eq!(
            planned(json!({"persistentVolumeClaim": {"claimName": "home"}})),
            Ok(Materialisation::Claim("home".to_owned()))
        );
        assert_eq!(
            planned(json!({"hostPath": {"path": "/data", "type": "DirectoryOrCreate"}})),
            Ok(Materialisation::Host { path: "/data".into(), create: true })
        );
        assert_eq!(
            planned(json!({"nfs": {"server": "files", "path": "/home"}})),
            Err(MountError::Unsupported)
        );
    }

    #[test]
    fn config_map_keys_and_items() {
        let file = |name: &str, mode, contents: &[u8]| (name.to_owned(), mode, contents.to_vec());
        assert_eq!(
            files(json!({"configMap": {"name": "nss"}})),
            [file("group", 0o644, b"g"), file("logo", 0o644, &[0, 1]), file("passwd", 0o644, b"p")]
        );
        assert_eq!(
            files(json!({"configMap": {"name": "nss", "defaultMode": 0o600, "items": [
                {"key": "passwd", "path": "etc/passwd"}, {"key": "group", "path": "g", "mode": 0o400}]}})),
            [file("etc/passwd", 0o600, b"p"), file("g", 0o400, b"g")]
        );
        assert_eq!(files(json!({"configMap": {"name": "no", "optional": true}})), []);
    }

    #[test]
    fn what_is_missing_or_escapes_is_refused() {
        for (volume, message) in [
            (json!({"secret": {"secretName": "no"}}), "secret \"no\" not found"),
            (
                json!({"secret": {"secretName": "s", "items": [{"key": "x", "path": "x"}]}}),
                "references non-existent config key: x",
            ),
            (
                json!({"secret": {"secretName": "s", "items": [{"key": "token", "path": "../x"}]}}),
                "path \"../x\" must be relative and without '..'",
            ),
        ] {
            assert_eq!(planned(volume).unwrap_err().to_string(), message);
        }
    }
}
