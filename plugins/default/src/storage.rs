use std::collections::BTreeMap;

use wasmspawner_sdk::pod::{
    AccessMode, ClaimReclaim, ClaimSource, ClaimTemplate, EmptyDirSource, Mount, NfsSource, ObjectSource,
    Volume, VolumeSource,
};
use wasmspawner_sdk::{Pair, Section, quantity};

use crate::{placement, template};

/// The volumes of the pod, and their mounts in the lab.
pub(crate) struct Storage {
    pub(crate) volumes: Vec<Volume>,
    pub(crate) mounts: Vec<Mount>,
}

impl Storage {
    pub(crate) fn read(config: &mut Section<'_>) -> Self {
        let volumes = config.list("volumes", volume);
        let mut storage = Self { volumes, mounts: Vec::new() };
        storage.mounts = config.list("mounts", |entry| storage.mount(entry));
        storage
    }

    /// A mount of one of these volumes.
    pub(crate) fn mount(&self, entry: &mut Section<'_>) -> Mount {
        let volume: String = entry.required("volume");
        if entry.has("volume") && self.volumes.iter().all(|known| known.name != volume) {
            entry.problem("volume", format!("there is no volume `{volume}`"));
        }
        Mount {
            volume,
            path: template::required(entry, "path"),
            sub_path: entry.template("sub_path"),
            read_only: entry.or_default("read_only"),
        }
    }
}

/// The part of the source in which the service expands template fields: a name or a path.
pub(crate) fn name(volume: &mut Volume) -> Option<&mut String> {
    match &mut volume.source {
        VolumeSource::Nfs(nfs) => Some(&mut nfs.path),
        VolumeSource::Claim(claim) => Some(&mut claim.claim_name),
        VolumeSource::ConfigMap(object) | VolumeSource::Secret(object) => Some(&mut object.name),
        VolumeSource::HostPath(path) => Some(path),
        VolumeSource::EmptyDir(_) => None,
    }
}

/// Reads a volume: a name and exactly one source.
fn volume(entry: &mut Section<'_>) -> Volume {
    let name: String = entry.required("name");
    let sources = [
        entry.section("nfs", nfs).map(VolumeSource::Nfs),
        entry.section("claim", claim).map(VolumeSource::Claim),
        entry.section("config_map", object).map(VolumeSource::ConfigMap),
        entry.section("secret", object).map(VolumeSource::Secret),
        entry.section("empty_dir", empty_dir).map(VolumeSource::EmptyDir),
        entry.template("host_path").map(VolumeSource::HostPath),
    ];
    let mut given = sources.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(source), None) => Volume::new(name, source),
        (None, _) => {
            entry.problem("", "needs one of nfs, claim, config_map, secret, empty_dir or host_path");
            Volume::empty_dir(name)
        }
        (Some(source), Some(_)) => {
            entry.problem("", "has more than one source; give each volume one");
            Volume::new(name, source)
        }
    }
}

fn nfs(entry: &mut Section<'_>) -> NfsSource {
    NfsSource {
        server: entry.required("server"),
        path: template::required(entry, "path"),
        read_only: entry.or_default("read_only"),
    }
}

fn claim(entry: &mut Section<'_>) -> ClaimSource {
    ClaimSource {
        claim_name: template::required(entry, "name"),
        read_only: entry.or_default("read_only"),
        create: entry.section("create", |create| ClaimTemplate {
            storage_bytes: create.required_parsed("storage", quantity::bytes),
            storage_class: create.optional("storage_class"),
            access_modes: access_modes(create, "access_modes"),
            labels: templates(create, "labels"),
            annotations: templates(create, "annotations"),
            selector: pairs(create, "selector"),
            reclaim: reclaim(create),
        }),
    }
}

pub(crate) fn pairs(entry: &mut Section<'_>, key: &'static str) -> Vec<Pair> {
    let pairs = placement::pairs(entry, key);
    pairs.into_iter().map(|(name, value)| Pair { name, value }).collect()
}

pub(crate) fn templates(entry: &mut Section<'_>, key: &'static str) -> Vec<Pair> {
    let pairs = pairs(entry, key);
    template::check(entry, key, pairs.iter().map(|pair| &pair.value));
    pairs
}

fn reclaim(entry: &mut Section<'_>) -> ClaimReclaim {
    let reclaim = entry.parsed("on_server_deletion", |text| match text {
        "retain" => Ok(ClaimReclaim::Retain),
        "delete" => Ok(ClaimReclaim::Delete),
        _ => Err("must be retain or delete"),
    });
    reclaim.unwrap_or(ClaimReclaim::Retain)
}

pub(crate) fn access_modes(entry: &mut Section<'_>, key: &'static str) -> Vec<AccessMode> {
    let names: Vec<String> = entry.or_default(key);
    let mode = |name: &String| match name.as_str() {
        "ReadWriteOnce" => Some(AccessMode::ReadWriteOnce),
        "ReadOnlyMany" => Some(AccessMode::ReadOnlyMany),
        "ReadWriteMany" => Some(AccessMode::ReadWriteMany),
        "ReadWriteOncePod" => Some(AccessMode::ReadWriteOncePod),
        _ => None,
    };
    let modes: Vec<_> = names.iter().filter_map(mode).collect();
    if modes.len() != names.len() {
        entry.problem(key, "must be ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod");
    }
    modes
}

fn object(entry: &mut Section<'_>) -> ObjectSource {
    ObjectSource {
        name: template::required(entry, "name"),
        optional: entry.or_default("optional"),
        items: entry.or_default::<BTreeMap<String, String>>("items").into_iter().collect(),
        mode: entry.parsed("mode", |text| {
            u32::from_str_radix(text, 8).map_err(|_| "must be octal, such as \"0440\"")
        }),
    }
}

fn empty_dir(entry: &mut Section<'_>) -> EmptyDirSource {
    EmptyDirSource {
        size_limit_bytes: entry.parsed("size_limit", quantity::bytes),
        memory: entry.or_default("memory"),
    }
}
