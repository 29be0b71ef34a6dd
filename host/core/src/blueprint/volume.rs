//! Where the files of a blueprint's volume are.

use super::{BlueprintVolume, Export};
use crate::quota::Quantity;

/// Where the files of a volume are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeFiles<'a> {
    /// In a directory of an NFS server.
    Nfs(&'a Export),
    /// In the volume claim of this name.
    Claim(&'a str),
    /// In the `ConfigMap` of this name.
    ConfigMap(&'a str),
    /// In an empty directory with at most so many bytes.
    EmptyDir(Option<u64>),
}

impl BlueprintVolume {
    /// Where the files are; what is wrong with that otherwise.
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
