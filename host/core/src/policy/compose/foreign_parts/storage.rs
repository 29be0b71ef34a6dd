//! The storage behind the volumes of a pod. Volumes with different names may have the same storage, or the storage of
//! one may be a part of the other's.

use std::fmt;

use k8s_openapi::api::core::v1::Volume;

use crate::values::path;

/// Storage that containers can write to. Kubernetes mounts `ConfigMap`s, Secrets and the like read only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// The claim with this name, in the namespace of the lab.
    Claim(String),
    /// A directory of an NFS server.
    Nfs { server: String, directory: Directory },
    /// A directory of the node.
    Node(Directory),
    /// The scratch directory of the volume with this name. No other volume has it.
    Scratch(String),
}

/// The storage of a volume, and whether the volume itself is read only.
pub(super) struct VolumeStorage {
    pub(super) storage: Storage,
    pub(super) read_only: bool,
}

/// The steps of an absolute path, without empty steps and `.`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory(Vec<String>);

impl Storage {
    /// Returns the storage of a volume of the pod. Kubernetes refuses a pod with a volume that has two sources.
    pub(super) fn from_volume(volume: &Volume) -> Vec<VolumeStorage> {
        let of = |storage: Self, read_only: Option<bool>| VolumeStorage {
            storage,
            read_only: read_only == Some(true),
        };
        let claim = volume.persistent_volume_claim.iter();
        let claim = claim.map(|claim| of(Self::Claim(claim.claim_name.clone()), claim.read_only));
        let nfs = volume.nfs.iter().map(|nfs| {
            let directory = Directory::from_path(&nfs.path);
            of(Self::Nfs { server: server(&nfs.server), directory }, nfs.read_only)
        });
        let node = volume.host_path.iter().map(|host| of(Self::Node(Directory::from_path(&host.path)), None));
        let scratch = volume.empty_dir.iter().map(|_| of(Self::Scratch(volume.name.clone()), None));
        claim.chain(nfs).chain(node).chain(scratch).collect()
    }

    /// Returns the storage that both have in common: of two directories, the inner one.
    pub(super) fn shared_with<'a>(&'a self, other: &'a Self) -> Option<&'a Self> {
        if self.contains(other) { Some(other) } else { other.contains(self).then_some(self) }
    }

    /// True if a container that can write anywhere in `self` can write to all of `other`.
    pub(super) fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nfs { server, directory }, Self::Nfs { server: of_other, directory: inner }) => {
                server == of_other && directory.contains(inner)
            }
            (Self::Node(directory), Self::Node(inner)) => directory.contains(inner),
            _ => self == other,
        }
    }
}

/// Returns one spelling for all spellings of a server's name. It does not detect that different names or addresses
/// belong to one server.
fn server(host: &str) -> String {
    match path::address(host) {
        Some(address) => address.to_canonical().to_string(),
        None => host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
    }
}

impl Directory {
    /// Splits the path, which was checked before to have no `..`.
    fn from_path(path: &str) -> Self {
        let steps = path.split('/').filter(|step| !matches!(*step, "" | "."));
        Self(steps.map(str::to_owned).collect())
    }

    fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0.join("/"))
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(name) => write!(f, "the claim `{name}`"),
            Self::Nfs { server, directory } => {
                write!(f, "the path `{directory}` of the NFS server `{server}`")
            }
            Self::Node(directory) => write!(f, "the path `{directory}` of the node"),
            Self::Scratch(volume) => write!(f, "the scratch directory `{volume}`"),
        }
    }
}
