use super::{Findings, metadata};
use crate::names::{DnsLabel, ObjectName};
use crate::policy::{ClaimSource, Mount, ObjectSource, Volume, VolumeSource};
use crate::values::path;

/// Prefix of the volumes that the service adds itself.
const OWN_VOLUME_PREFIX: &str = "wasmspawner-";

const NOT_ABSOLUTE: &str = "must be an absolute path without `..` and `:`";
const NOT_RELATIVE: &str = "must be a relative path without `..` and `:`";

pub(super) fn volumes(volumes: &[Volume], found: &mut Findings) {
    found.each("volumes", volumes, ("name", |volume| volume.name.clone()), |volume, found| {
        found.parsed("name", DnsLabel::parse(volume.name.as_str()));
        found.refuse_if(volume.name.starts_with(OWN_VOLUME_PREFIX), "name", "is the service's own");
        found.at("source", |found| source(&volume.source, found));
    });
}

fn source(source: &VolumeSource, found: &mut Findings) {
    match source {
        VolumeSource::Nfs(nfs) => found.at("nfs", |found| {
            found.refuse_if(nfs.server.is_empty(), "server", "is empty");
            found.refuse_if(
                !nfs.server.is_empty() && !path::is_host(&nfs.server),
                "server",
                "is not the name or the address of one host",
            );
            found.refuse_if(!path::is_absolute(&nfs.path), "path", NOT_ABSOLUTE);
        }),
        VolumeSource::Claim(claim) => found.at("claim", |found| self::claim(claim, found)),
        VolumeSource::ConfigMap(object) => found.at("config_map", |found| self::object(object, found)),
        VolumeSource::Secret(object) => found.at("secret", |found| self::object(object, found)),
        VolumeSource::EmptyDir(_) => {}
        VolumeSource::HostPath(path) => found.refuse_if(!path::is_absolute(path), "host_path", NOT_ABSOLUTE),
    }
}

fn claim(claim: &ClaimSource, found: &mut Findings) {
    found.parsed("claim_name", ObjectName::parse(claim.claim_name.as_str()));
    if let Some(template) = &claim.create {
        found.at("create", |found| {
            found.refuse_if(template.storage_bytes == 0, "storage_bytes", "must be at least 1");
            if let Some(class) = template.storage_class.as_deref().filter(|class| !class.is_empty()) {
                found.parsed("storage_class", ObjectName::parse(class));
            }
            metadata::labels(&template.labels, found);
            metadata::annotations(&template.annotations, found);
            metadata::selector("selector", &template.selector, found);
        });
    }
}

fn object(object: &ObjectSource, found: &mut Findings) {
    found.parsed("name", ObjectName::parse(object.name.as_str()));
    found.refuse_if(object.mode.is_some_and(|mode| mode > 0o777), "mode", "is above 0o777");
    found.each("items", &object.items, ("", |(_, to)| to.clone()), |(key, to), found| {
        found.refuse_if(!path::is_key(key), "", "has no valid key");
        found.refuse_if(!path::is_relative(to), "", NOT_RELATIVE);
    });
}

pub(super) fn mounts(mounts: &[Mount], found: &mut Findings) {
    found.each("mounts", mounts, ("path", |mount| mount.path.clone()), |mount, found| {
        found.parsed("volume", DnsLabel::parse(mount.volume.as_str()));
        found.refuse_if(!path::is_absolute(&mount.path), "path", NOT_ABSOLUTE);
        let own = matches!(mount.path.trim_end_matches('/'), "/etc/passwd" | "/etc/group");
        found.refuse_if(own, "path", "is the service's own");
        if let Some(sub_path) = &mount.sub_path {
            found.refuse_if(!path::is_relative(sub_path), "sub_path", NOT_RELATIVE);
        }
    });
}
