//! The storage behind the volumes of a finished pod, to find out which containers write to the same storage.

use k8s_openapi::api::core::v1::{PodSpec, Volume};

/// A place: the kind and the name of the object that holds the files, then the steps of a path within it.
#[derive(Debug)]
pub(crate) struct WrittenStorage {
    place: Vec<String>,
    pub(crate) read_only: bool,
}

impl WrittenStorage {
    /// The storage that is part of both.
    pub(crate) fn shared_with<'a>(&'a self, other: &'a Self) -> Option<&'a Self> {
        if self.contains(other) { Some(other) } else { other.contains(self).then_some(self) }
    }

    pub(crate) fn contains(&self, other: &Self) -> bool {
        other.place.starts_with(&self.place)
    }
}

/// The storage of the volume with this name to which containers could write.
pub(crate) fn of(spec: &PodSpec, volume: &str) -> Vec<WrittenStorage> {
    let volume = spec.volumes.iter().flatten().find(|found| found.name == volume);
    volume.map(of_volume).unwrap_or_default()
}

fn of_volume(volume: &Volume) -> Vec<WrittenStorage> {
    let storage = |place: &[&str], path: &str, read_only: Option<bool>| {
        let steps = path.split('/').filter(|step| !matches!(*step, "" | "."));
        let place = place.iter().copied().chain(steps).map(str::to_owned).collect();
        WrittenStorage { place, read_only: read_only == Some(true) }
    };
    let claim = volume.persistent_volume_claim.as_ref();
    let claim = claim.map(|claim| storage(&["claim", &claim.claim_name], "", claim.read_only));
    let nfs = volume.nfs.as_ref().map(|nfs| {
        let server = nfs.server.to_lowercase();
        storage(&["nfs", server.trim_end_matches('.')], &nfs.path, nfs.read_only)
    });
    let host = volume.host_path.as_ref().map(|host| storage(&["node"], &host.path, None));
    let empty = volume.empty_dir.as_ref().map(|_| storage(&["scratch", &volume.name], "", None));
    claim.into_iter().chain(nfs).chain(host).chain(empty).collect()
}
