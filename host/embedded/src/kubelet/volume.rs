//! What a volume becomes on disk.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{KeyToPath, Volume};
use thiserror::Error;

use super::env::{ConfigError, Entries, Kind, References};

/// One file of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedFile {
    /// Relative, without `..`.
    path: PathBuf,
    mode: u32,
    contents: Vec<u8>,
}

/// What a volume becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Materialisation {
    /// A fresh directory of the pod, kept over restarts of its containers.
    Empty,
    /// A directory of the pod with these files.
    Files(Vec<PlannedFile>),
    /// The directory of a claim, which outlives the pod.
    Claim(String),
    /// A directory or file of the machine; a missing directory is created if `create`.
    Host { path: PathBuf, create: bool },
}

/// Why a volume cannot be mounted: shown as `FailedMount`, and tried again.
#[derive(Debug, Error)]
pub(crate) enum MountError {
    #[error("references non-existent config key: {0}")]
    KeyNotFound(String),
    #[error("path {0:?} must be relative and without '..'")]
    Path(String),
    #[error(transparent)]
    Reference(#[from] ConfigError),
    #[error(
        "volumes of this kind do not exist on a one-machine cluster: use an emptyDir, configMap, secret, hostPath or persistentVolumeClaim"
    )]
    Unsupported,
    #[error("hostPath type check failed: {0} is not a directory")]
    NotADirectory(PathBuf),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// Decides what one volume becomes.
pub(crate) fn plan(volume: &Volume, references: &References) -> Result<Materialisation, MountError> {
    if volume.empty_dir.is_some() {
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
    let files = references
        .entries(kind, name, optional)?
        .map(|entries| select(entries, items.as_deref().unwrap_or_default(), optional, mode));
    files.transpose().map(|files| Materialisation::Files(files.unwrap_or_default()))
}

/// All keys under their own names, or only the items under theirs.
fn select(
    entries: &Entries,
    items: &[KeyToPath],
    optional: Option<bool>,
    default_mode: Option<i32>,
) -> Result<Vec<PlannedFile>, MountError> {
    let file = |path: &str, mode: Option<i32>, contents: &[u8]| {
        let mode = mode.or(default_mode).and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644) & 0o777;
        Ok(PlannedFile { path: relative(path)?, mode, contents: contents.to_vec() })
    };
    if items.is_empty() {
        return entries.iter().map(|(key, contents)| file(key, None, contents)).collect();
    }
    let mut files = Vec::new();
    for item in items {
        match entries.get(&item.key) {
            Some(contents) => files.push(file(&item.path, item.mode, contents)?),
            None if optional == Some(true) => {}
            None => return Err(MountError::KeyNotFound(item.key.clone())),
        }
    }
    Ok(files)
}

/// A path that stays inside its volume.
pub(crate) fn relative(path: &str) -> Result<PathBuf, MountError> {
    let inside =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if inside && !path.is_empty() { Ok(PathBuf::from(path)) } else { Err(MountError::Path(path.to_owned())) }
}

/// Makes `directory` hold exactly these files. They are written beside it and then take its place, so that no process
/// sees half of them, and nobody else can read one for a moment.
pub(crate) fn write_files(directory: &Path, files: &[PlannedFile]) -> io::Result<()> {
    let next = directory.with_extension("next");
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    remove(&next)?;
    private.create(&next)?;
    for file in files {
        let path = next.join(&file.path);
        if let Some(parent) = path.parent() {
            private.create(parent)?;
        }
        let mut handle =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        handle.write_all(&file.contents)?;
        handle.set_permissions(Permissions::from_mode(file.mode))?;
    }
    remove(directory)?;
    fs::rename(&next, directory)
}

/// Removes a directory with everything in it, if it is there.
pub(crate) fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn planned(mut volume: Value) -> Result<Materialisation, MountError> {
        volume["name"] = json!("v");
        let map =
            json!({"metadata": {"name": "nss"}, "data": {"passwd": "p"}, "binaryData": {"logo": "AAE="}});
        let secret = json!({"metadata": {"name": "s"}, "data": {"token": "dA=="}});
        let references = References::of(
            vec![serde_json::from_value(map).unwrap()],
            vec![serde_json::from_value(secret).unwrap()],
        );
        plan(&serde_json::from_value(volume).unwrap(), &references)
    }

    #[test]
    fn volumes_become_directories_and_files() {
        let file = |path: &str, mode, contents: &[u8]| PlannedFile {
            path: path.into(),
            mode,
            contents: contents.to_vec(),
        };
        let items = json!([{"key": "passwd", "path": "etc/passwd", "mode": 0o400}]);
        for (volume, expected) in [
            (json!({"emptyDir": {}}), Materialisation::Empty),
            (
                json!({"persistentVolumeClaim": {"claimName": "home"}}),
                Materialisation::Claim("home".to_owned()),
            ),
            (
                json!({"hostPath": {"path": "/data", "type": "DirectoryOrCreate"}}),
                Materialisation::Host { path: "/data".into(), create: true },
            ),
            (
                json!({"configMap": {"name": "nss", "defaultMode": 0o600}}),
                Materialisation::Files(vec![file("logo", 0o600, &[0, 1]), file("passwd", 0o600, b"p")]),
            ),
            (
                json!({"configMap": {"name": "nss", "items": items}}),
                Materialisation::Files(vec![file("etc/passwd", 0o400, b"p")]),
            ),
            (json!({"configMap": {"name": "no", "optional": true}}), Materialisation::Files(Vec::new())),
        ] {
            assert_eq!(planned(volume).unwrap(), expected);
        }
        for (volume, message) in [
            (json!({"nfs": {"server": "files", "path": "/home"}}), "volumes of this kind do not exist"),
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
            assert!(planned(volume).unwrap_err().to_string().contains(message), "{message}");
        }
    }

    #[test]
    fn files_have_their_mode_and_old_ones_go() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("volumes/token");
        let file = |path: &str, mode| PlannedFile { path: path.into(), mode, contents: b"t".to_vec() };
        write_files(&directory, &[file("old", 0o644)]).unwrap();
        write_files(&directory, &[file("token", 0o400), file("sub/x", 0o640)]).unwrap();
        let mode = |path: &str| fs::metadata(directory.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("."), mode("token"), mode("sub"), mode("sub/x")), (0o700, 0o400, 0o700, 0o640));
        assert!(!directory.join("old").exists());
    }
}
