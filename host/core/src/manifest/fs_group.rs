use crate::config::lab::{FsGroup, FsGroupKind};
use crate::policy::{Volume, VolumeSource};

/// Returns the `fsGroup` of a lab with these volumes whose user has the primary group `gid`.
pub(super) fn of_lab(config: &FsGroup, volumes: &[Volume], gid: u32) -> Option<i64> {
    let needs_it = |volume: &Volume| match (&config.volumes, &volume.source) {
        (Some(names), _) => names.iter().any(|name| name.as_str() == volume.name),
        (None, VolumeSource::Claim(claim)) => claim.create.is_some(),
        (None, _) => false,
    };
    let group = match config.group {
        FsGroupKind::None => return None,
        FsGroupKind::User => gid,
        FsGroupKind::Fixed(group) => group,
    };
    volumes.iter().any(needs_it).then(|| group.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volumes() -> Vec<Volume> {
        serde_json::from_value(serde_json::json!([
            {"name": "home", "source": {"claim": {"claim_name": "claim-ada", "create": {"storage_bytes": 1}}}},
            {"name": "shared", "source": {"claim": {"claim_name": "team"}}},
        ]))
        .unwrap()
    }

    /// The configuration; then the group of a lab with a claim that is created for it, of one with the site's claim
    /// alone, and of one with both. The user's group is 7.
    #[test]
    fn a_site_says_which_group_the_files_get_and_for_which_volumes() {
        for (yaml, home, shared, both) in [
            ("{}", Some(7), None, Some(7)),
            ("{group: user}", Some(7), None, Some(7)),
            ("{group: none}", None, None, None),
            ("{group: 100}", Some(100), None, Some(100)),
            ("{volumes: [shared]}", None, Some(7), Some(7)),
            ("{group: 100, volumes: [home, shared]}", Some(100), Some(100), Some(100)),
            ("{group: 100, volumes: []}", None, None, None),
            ("{group: none, volumes: [home]}", None, None, None),
        ] {
            let config: FsGroup = serde_saphyr::from_str(yaml).unwrap();
            let all = volumes();
            let of = |volumes: &[Volume]| of_lab(&config, volumes, 7);
            assert_eq!([of(&all[..1]), of(&all[1..]), of(&all)], [home, shared, both], "{yaml}");
        }
    }
}
