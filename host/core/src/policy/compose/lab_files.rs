//! Decides which of the policies' files a lab and its init containers have, beside those of the site.

use super::CERTIFICATE_PATH;
use super::merge::Merged;
use crate::config::lab::{LabSection, MAX_BYTES_OF_FILES};
use crate::policy::{Customization, InitContainer, Mount, SecurityProfile, TextFile, VolumeSource};
use crate::values::path;

/// Returns the answer of a policy whose init containers have its files, too. Only those that can do no more than the lab's
/// user have them: what runs as root runs what its own image has.
pub(super) fn with_files(mut asked: Customization, files: &[TextFile]) -> Customization {
    let restricted = |init: &&mut InitContainer| init.profile == SecurityProfile::Restricted;
    for init in asked.init_containers.iter_mut().filter(restricted) {
        let is_free = |path: &&String| init.mounts.iter().all(|mount| !path::are_nested(&mount.path, path));
        init.files = files.iter().map(|file| &file.path).filter(is_free).cloned().collect();
    }
    asked
}

/// Returns the path of the first file that the lab cannot have, and the reason.
pub(super) fn problem<'a>(merged: &'a Merged, config: &LabSection) -> Option<(&'a str, String)> {
    let mut earlier: Vec<&str> = config.files.keys().map(String::as_str).collect();
    let mut bytes: usize = config.files.values().map(String::len).sum();
    for file in &merged.files {
        let path = file.path.as_str();
        if let Some(problem) = taken(path, &earlier, merged, config) {
            return Some((path, problem));
        }
        earlier.push(path);
        bytes += file.content.len();
        if bytes > MAX_BYTES_OF_FILES {
            let problem = format!(
                "makes {bytes} bytes of files together with the others of the lab; {MAX_BYTES_OF_FILES} are possible"
            );
            return Some((path, problem));
        }
    }
    None
}

/// Says what is at the path of a policy's file already.
fn taken(path: &str, files: &[&str], merged: &Merged, config: &LabSection) -> Option<String> {
    let nested = |other: &str| path::are_nested(path, other);
    if let Some(other) = files.iter().find(|other| nested(other)) {
        let message =
            format!("there is a file `{other}` already, from the site (`lab.files`) or another policy");
        return Some(message);
    }
    let secrets = config.secrets_path.as_deref().map(|path| (path, "its secrets (`lab.secrets_path`)"));
    let mut own = secrets.into_iter().chain([(CERTIFICATE_PATH, "its certificate")]);
    if let Some((_, what)) = own.find(|(own, _)| nested(own)) {
        return Some(format!("is where the lab finds {what}"));
    }
    // A file in a volume that outlasts the lab would leave its place behind there, empty and owned by root.
    let lasts = |name: &str| {
        let volume = merged.volumes.iter().find(|volume| volume.name == name);
        !matches!(volume.map(|volume| &volume.source), Some(VolumeSource::EmptyDir(_)))
    };
    let in_the_way = |mount: &&Mount| {
        path::is_below(&path::plain(&mount.path), path) || nested(&mount.path) && lasts(&mount.volume)
    };
    let mount = merged.mounts.iter().find(in_the_way);
    mount.map(|mount| {
        format!(
            "the volume `{}` is mounted at `{}`; choose a path outside of volumes",
            mount.volume, mount.path
        )
    })
}
