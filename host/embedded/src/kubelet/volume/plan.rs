//! What a volume becomes on disk; decided here, written elsewhere.

use std::path::{Component, Path, PathBuf};

use k8s_openapi::{
    ByteString,
    api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, ProjectedVolumeSource, Volume, VolumeProjection},
};
use thiserror::Error;

use crate::kubelet::env::{PodFacts, References, pod_field, resource_field};

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
    /// A directory that the configuration gives for `server:/path`.
    Nfs(String),
}

/// Why a volume cannot be mounted: shown as `FailedMount`, and tried again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum MountError {
    #[error("{kind} {name:?} not found")]
    NotFound { kind: &'static str, name: String },
    #[error("references non-existent config key: {key}")]
    KeyNotFound { key: String },
    #[error("path {path:?} must be relative and without '..'")]
    Path { path: String },
    #[error("{0}")]
    Field(#[from] crate::kubelet::env::ConfigError),
    #[error(
        "volumes of this kind do not exist on a one-machine cluster: use an emptyDir, configMap, secret, projected, downwardAPI, hostPath or persistentVolumeClaim"
    )]
    Unsupported,
    #[error("no directory is configured for nfs export {export:?}: add it to the kubelet's `nfs` map")]
    NfsUnmapped { export: String },
    #[error("hostPath type check failed: {path} is not a directory")]
    NotADirectory { path: String },
    #[error("{path}: {message}")]
    Io { path: String, message: String },
}

/// Decides what one volume becomes.
pub(crate) fn plan(
    pod: &Pod,
    volume: &Volume,
    references: &References,
    facts: &PodFacts,
) -> Result<Materialisation, MountError> {
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
    if let Some(nfs) = &volume.nfs {
        return Ok(Materialisation::Nfs(format!("{}:{}", nfs.server, nfs.path)));
    }
    let source = Files { pod, references, facts };
    if let Some(map) = &volume.config_map {
        let mode = mode(map.default_mode);
        return Ok(Materialisation::Files(source.config_map(
            &map.name,
            map.items.as_deref(),
            map.optional,
            mode,
        )?));
    }
    if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        let mode = mode(secret.default_mode);
        return Ok(Materialisation::Files(source.secret(
            name,
            secret.items.as_deref(),
            secret.optional,
            mode,
        )?));
    }
    if let Some(downward) = &volume.downward_api {
        let mode = mode(downward.default_mode);
        return Ok(Materialisation::Files(source.downward(downward.items.as_deref(), mode)?));
    }
    if let Some(projected) = &volume.projected {
        return Ok(Materialisation::Files(source.projected(projected)?));
    }
    Err(MountError::Unsupported)
}

fn mode(mode: Option<i32>) -> u32 {
    mode.and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644) & 0o777
}

/// Where files of configMap, secret, projected and downwardAPI volumes come from.
struct Files<'a> {
    pod: &'a Pod,
    references: &'a References,
    facts: &'a PodFacts,
}

type Entries = Vec<(String, Vec<u8>)>;

impl Files<'_> {
    fn config_map(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: Option<bool>,
        mode: u32,
    ) -> Result<Vec<PlannedFile>, MountError> {
        let Some(map) = self.references.config_maps.get(name) else {
            return absent("configmap", name, optional);
        };
        let text = map.data.iter().flatten().map(|(key, value)| (key.clone(), value.clone().into_bytes()));
        let binary =
            map.binary_data.iter().flatten().map(|(key, ByteString(bytes))| (key.clone(), bytes.clone()));
        select(text.chain(binary).collect(), items, optional, mode)
    }

    fn secret(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: Option<bool>,
        mode: u32,
    ) -> Result<Vec<PlannedFile>, MountError> {
        let Some(secret) = self.references.secrets.get(name) else {
            return absent("secret", name, optional);
        };
        let entries =
            secret.data.iter().flatten().map(|(key, ByteString(bytes))| (key.clone(), bytes.clone()));
        select(entries.collect(), items, optional, mode)
    }

    fn downward(
        &self,
        items: Option<&[DownwardAPIVolumeFile]>,
        mode: u32,
    ) -> Result<Vec<PlannedFile>, MountError> {
        items.unwrap_or_default().iter().map(|item| self.downward_file(item, mode)).collect()
    }

    fn downward_file(&self, item: &DownwardAPIVolumeFile, mode: u32) -> Result<PlannedFile, MountError> {
        let value = match (&item.field_ref, &item.resource_field_ref, &self.pod.spec) {
            (Some(field), _, _) => pod_field(self.pod, self.facts, &field.field_path)?,
            (None, Some(resource), Some(spec)) => resource_field(spec, self.facts, "", resource)?,
            _ => String::new(),
        };
        let mode = item.mode.map_or(mode, |own| self::mode(Some(own)));
        Ok(PlannedFile { path: relative(&item.path)?, mode, contents: value.into_bytes() })
    }

    fn projected(&self, projected: &ProjectedVolumeSource) -> Result<Vec<PlannedFile>, MountError> {
        let mode = mode(projected.default_mode);
        let mut files = Vec::new();
        for source in projected.sources.iter().flatten() {
            files.extend(self.projection(source, mode)?);
        }
        Ok(files)
    }

    /// Service-account tokens and trust bundles are left out: there is nobody to sign them.
    fn projection(&self, source: &VolumeProjection, mode: u32) -> Result<Vec<PlannedFile>, MountError> {
        if let Some(map) = &source.config_map {
            self.config_map(&map.name, map.items.as_deref(), map.optional, mode)
        } else if let Some(secret) = &source.secret {
            self.secret(&secret.name, secret.items.as_deref(), secret.optional, mode)
        } else if let Some(downward) = &source.downward_api {
            self.downward(downward.items.as_deref(), mode)
        } else {
            Ok(Vec::new())
        }
    }
}

fn absent(kind: &'static str, name: &str, optional: Option<bool>) -> Result<Vec<PlannedFile>, MountError> {
    if optional == Some(true) {
        Ok(Vec::new())
    } else {
        Err(MountError::NotFound { kind, name: name.to_owned() })
    }
}

/// All keys under their own names, or only the items under theirs.
fn select(
    entries: Entries,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: u32,
) -> Result<Vec<PlannedFile>, MountError> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return entries
            .into_iter()
            .map(|(key, contents)| Ok(PlannedFile { path: relative(&key)?, mode, contents }))
            .collect();
    };
    let mut files = Vec::new();
    for item in items {
        match entries.iter().find(|(key, _)| *key == item.key) {
            Some((_, contents)) => files.push(PlannedFile {
                path: relative(&item.path)?,
                mode: item.mode.map_or(mode, |own| self::mode(Some(own))),
                contents: contents.clone(),
            }),
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
        let facts = PodFacts {
            pod_ip: "127.101.0.2".to_owned(),
            host_ip: "127.0.0.1".to_owned(),
            node_name: "local".to_owned(),
            node_cpu_milli: 1000,
            node_memory: 1 << 30,
        };
        let map = json!({"data": {"passwd": "p", "group": "g"}, "binaryData": {"logo": "AAE="}});
        let references = References {
            config_maps: [("nss".to_owned(), serde_json::from_value(map).unwrap())].into(),
            secrets: [("s".to_owned(), serde_json::from_value(json!({"data": {"token": "dA=="}})).unwrap())]
                .into(),
        };
        let pod = json!({"metadata": {"name": "nb", "namespace": "lab"}, "spec": {"containers": []}});
        plan(
            &serde_json::from_value(pod).unwrap(),
            &serde_json::from_value(volume).unwrap(),
            &references,
            &facts,
        )
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
            Ok(Materialisation::Nfs("files:/home".to_owned()))
        );
        assert_eq!(planned(json!({"csi": {"driver": "x"}})), Err(MountError::Unsupported));
    }

    #[test]
    fn config_map_keys_and_items() {
        let file = |name: &str, mode, contents: &[u8]| (name.to_owned(), mode, contents.to_vec());
        assert_eq!(
            files(json!({"configMap": {"name": "nss"}})),
            [file("group", 0o644, b"g"), file("passwd", 0o644, b"p"), file("logo", 0o644, &[0, 1])]
        );
        assert_eq!(
            files(json!({"configMap": {"name": "nss", "defaultMode": 0o600, "items": [
                {"key": "passwd", "path": "etc/passwd"}, {"key": "group", "path": "g", "mode": 0o400}]}})),
            [file("etc/passwd", 0o600, b"p"), file("g", 0o400, b"g")]
        );
        assert_eq!(files(json!({"configMap": {"name": "no", "optional": true}})), []);
    }

    #[test]
    fn projected_sources_are_merged() {
        let names: Vec<_> = files(json!({"projected": {"sources": [
            {"secret": {"name": "s"}}, {"configMap": {"name": "nss", "items": [{"key": "group", "path": "group"}]}},
            {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"serviceAccountToken": {"path": "token"}},
        ]}}))
        .into_iter()
        .map(|(name, ..)| name)
        .collect();
        assert_eq!(names, ["token", "group", "name"]);
    }

    #[test]
    fn what_is_missing_or_escapes_is_refused() {
        for (volume, message) in [
            (json!({"secret": {"secretName": "no"}}), "secret \"no\" not found"),
            (json!({"configMap": {"name": "no"}}), "configmap \"no\" not found"),
            (
                json!({"secret": {"secretName": "s", "items": [{"key": "x", "path": "x"}]}}),
                "references non-existent config key: x",
            ),
            (
                json!({"secret": {"secretName": "s", "items": [{"key": "token", "path": "../x"}]}}),
                "path \"../x\" must be relative and without '..'",
            ),
            (
                json!({"secret": {"secretName": "s", "items": [{"key": "token", "path": "/x"}]}}),
                "path \"/x\" must be relative and without '..'",
            ),
        ] {
            assert_eq!(planned(volume).unwrap_err().to_string(), message);
        }
    }
}
