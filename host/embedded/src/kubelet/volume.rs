//! Volumes on disk.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{KeyToPath, Volume};

use super::env::{Entries, Reference, References};

/// One file of a volume.
struct VolumeFile {
    /// The path in the volume: relative, without `..`.
    path: PathBuf,
    mode: u32,
    contents: Vec<u8>,
}

/// Creates the volume and returns its path. The path is `own`, a directory of the pod; or one below `claims`, the
/// directory of its namespace's claims; or a path of the machine. The error is the message of a `FailedMount` event.
pub(crate) fn make(
    volume: &Volume,
    own: PathBuf,
    claims: &Path,
    references: &References,
) -> Result<PathBuf, String> {
    if volume.empty_dir.is_some() {
        return private(own);
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        return private(claims.join(&claim.claim_name));
    }
    if let Some(host) = &volume.host_path {
        let path = PathBuf::from(&host.path);
        let missing = format!("hostPath {} does not exist on this machine: create it", host.path);
        return path.exists().then_some(path).ok_or(missing);
    }
    let (reference, items, mode) = match (&volume.config_map, &volume.secret) {
        (Some(map), _) => (Reference::config_map(&map.name, map.optional), &map.items, map.default_mode),
        (None, Some(secret)) => {
            let name = secret.secret_name.as_deref().unwrap_or_default();
            (Reference::secret(name, secret.optional), &secret.items, secret.default_mode)
        }
        (None, None) => {
            return Err("volumes of this kind do not exist on a one-machine cluster: use an emptyDir, \
                        configMap, secret, hostPath or persistentVolumeClaim"
                .to_owned());
        }
    };
    let files = match references.entries(reference)? {
        Some(entries) => select(entries, items.as_deref().unwrap_or_default(), reference.optional, mode)?,
        None => Vec::new(),
    };
    write_files(&own, &files).map_err(|error| format!("{}: {error}", own.display()))?;
    Ok(own)
}

fn private(path: PathBuf) -> Result<PathBuf, String> {
    create_private(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Selects all keys under their own names, or only the items under the items' paths.
fn select(
    entries: &Entries,
    items: &[KeyToPath],
    optional: bool,
    default_mode: Option<i32>,
) -> Result<Vec<VolumeFile>, String> {
    let file = |path: &str, mode: Option<i32>, contents: &[u8]| {
        let mode = mode.or(default_mode).and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644) & 0o777;
        Ok(VolumeFile { path: relative(path)?, mode, contents: contents.to_vec() })
    };
    if items.is_empty() {
        return entries.iter().map(|(key, contents)| file(key, None, contents)).collect();
    }
    let mut files = Vec::new();
    for item in items {
        match entries.get(&item.key) {
            Some(contents) => files.push(file(&item.path, item.mode, contents)?),
            None if optional => {}
            None => return Err(format!("references non-existent config key: {}", item.key)),
        }
    }
    Ok(files)
}

/// Checks that a path stays inside its volume.
pub(crate) fn relative(path: &str) -> Result<PathBuf, String> {
    let inside =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if inside && !path.is_empty() {
        return Ok(PathBuf::from(path));
    }
    Err(format!("path {path:?} must be relative and without '..'"))
}

/// Replaces the content of `directory` with these files. They are written to a private directory beside it, which then
/// takes its place: no process sees half of the files, and no other user can read one for a moment.
fn write_files(directory: &Path, files: &[VolumeFile]) -> io::Result<()> {
    let next = directory.with_extension("next");
    remove(&next)?;
    create_private(&next)?;
    for file in files {
        let path = next.join(&file.path);
        if let Some(parent) = path.parent() {
            create_private(parent)?;
        }
        let mut handle =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        handle.write_all(&file.contents)?;
        handle.set_permissions(Permissions::from_mode(file.mode))?;
    }
    remove(directory)?;
    fs::rename(&next, directory)
}

/// Creates a directory that only its owner may enter, and its parents.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
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

    fn made(root: &Path, mut volume: Value) -> Result<PathBuf, String> {
        volume["name"] = json!("v");
        let map =
            json!({"metadata": {"name": "nss"}, "data": {"passwd": "p"}, "binaryData": {"logo": "AAE="}});
        let secret = json!({"metadata": {"name": "s"}, "data": {"token": "dA=="}});
        let (map, secret) = (serde_json::from_value(map).unwrap(), serde_json::from_value(secret).unwrap());
        let references = References::from_objects(vec![map], vec![secret]);
        make(&serde_json::from_value(volume).unwrap(), root.join("v"), &root.join("claims"), &references)
    }

    #[test]
    fn volumes_become_directories_and_files() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let claim = made(root, json!({"persistentVolumeClaim": {"claimName": "home"}})).unwrap();
        assert_eq!((&claim, mode(&claim)), (&root.join("claims/home"), 0o700));
        let map = made(root, json!({"configMap": {"name": "nss", "defaultMode": 0o600}})).unwrap();
        assert_eq!((fs::read(map.join("logo")).unwrap(), mode(&map.join("passwd"))), (vec![0, 1], 0o600));
        let items = json!([{"key": "passwd", "path": "etc/passwd", "mode": 0o400}]);
        let map = made(root, json!({"configMap": {"name": "nss", "items": items}})).unwrap();
        assert_eq!(
            (mode(&map), mode(&map.join("etc")), mode(&map.join("etc/passwd"))),
            (0o700, 0o700, 0o400)
        );
        assert!(!map.join("logo").exists(), "files that are not in the volume any more are gone");
        made(root, json!({"configMap": {"name": "no", "optional": true}})).unwrap();
        for (volume, message) in [
            (json!({"nfs": {"server": "files", "path": "/home"}}), "volumes of this kind do not exist"),
            (json!({"hostPath": {"path": "/no/such"}}), "hostPath /no/such does not exist"),
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
            assert!(made(root, volume).unwrap_err().contains(message), "{message}");
        }
    }
}
