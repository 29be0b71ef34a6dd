//! The source of a blueprint's volume.

use super::{BlueprintVolume, Export};
use crate::users::quota::Quantity;

/// The source of a volume's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeFiles<'a> {
    /// A directory of an NFS server.
    Nfs(&'a Export),
    /// The volume claim of this name.
    Claim(&'a str),
    /// The `ConfigMap` of this name.
    ConfigMap(&'a str),
    /// An empty directory with a size limit in bytes, if any.
    EmptyDir(Option<u64>),
}

impl BlueprintVolume {
    /// Returns the source of the files, or an error if the volume does not have exactly one valid source.
    pub fn files(&self) -> Result<VolumeFiles<'_>, String> {
        let Self { nfs, claim, config_map, empty_dir, .. } = self;
        match (nfs, claim, config_map, empty_dir) {
            (Some(nfs), None, None, None) => Ok(VolumeFiles::Nfs(nfs)),
            (None, Some(claim), None, None) => Ok(VolumeFiles::Claim(&claim.name)),
            (None, None, Some(map), None) => Ok(VolumeFiles::ConfigMap(&map.name)),
            (None, None, None, Some(empty)) => {
                let limit = empty.size_limit.as_deref().map(str::parse::<Quantity>).transpose();
                let limit = limit.map_err(|error| format!("has a wrong sizeLimit: {error}"))?;
                Ok(VolumeFiles::EmptyDir(limit.and_then(Quantity::to_units)))
            }
            _ => Err("needs exactly one of nfs, claim, configMap and emptyDir".to_owned()),
        }
    }
}
