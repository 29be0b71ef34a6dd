//! Checks the permissions of files with secrets.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use rustix::process::{getegid, geteuid, getgroups};

/// Returns the mode of the file if anyone but its owner has access to it.
///
/// The kubelet mounts a Secret as files owned by root that a group of the pod may read (`fsGroup`). Such a file is
/// private to the pod. It is accepted unless the service itself runs as root.
pub fn exposed_mode(metadata: &Metadata) -> Option<u32> {
    let owners = || Owners {
        uid: metadata.uid(),
        gid: metadata.gid(),
        own_uid: geteuid().as_raw(),
        own_gids: [getegid()]
            .into_iter()
            .chain(getgroups().unwrap_or_default())
            .map(rustix::process::Gid::as_raw)
            .collect(),
    };
    let mode = metadata.mode() & 0o7777;
    (mode & 0o077 != 0 && !owners().are_those_of_a_mounted_secret(mode)).then_some(mode)
}

struct Owners {
    uid: u32,
    gid: u32,
    own_uid: u32,
    own_gids: Vec<u32>,
}

impl Owners {
    fn are_those_of_a_mounted_secret(&self, mode: u32) -> bool {
        let more_than_read_by_group = mode & 0o037;
        more_than_read_by_group == 0
            && self.uid == 0
            && self.own_uid != 0
            && self.own_gids.contains(&self.gid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_may_let_the_service_s_group_read() {
        for (mode, uid, gid, own_uid, accepted) in [
            (0o440, 0, 65532, 65532, true),
            (0o640, 0, 65532, 65532, true),
            (0o440, 0, 100, 65532, false),
            (0o440, 65532, 65532, 65532, false),
            (0o460, 0, 65532, 65532, false),
            (0o444, 0, 65532, 65532, false),
            (0o440, 0, 65532, 0, false),
        ] {
            let owners = Owners { uid, gid, own_uid, own_gids: vec![7, 65532] };
            assert_eq!(
                owners.are_those_of_a_mounted_secret(mode),
                accepted,
                "{mode:o} {uid}:{gid} {own_uid}"
            );
        }
    }

    #[test]
    fn a_file_that_only_its_owner_reads_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, exposed) in [(0o600, None), (0o400, None), (0o604, Some(0o604)), (0o660, Some(0o660))] {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(exposed_mode(&file.path().metadata().unwrap()), exposed, "{mode:o}");
        }
    }
}
