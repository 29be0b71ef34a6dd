//! The user and the groups of labs.

use serde_json::Value;

use crate::draft::Draft;

const GID: &str = "auth.identities.default.gid";
const GROUPS: &str = "auth.identities.default.groups";

fn set(draft: &mut Draft<'_>) {
    draft.set_service(GID, draft.groups.main().into());
    draft.set_service(GROUPS, draft.groups.all().into());
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().filter(|id| *id > 0)
}

pub(crate) fn uid(draft: &mut Draft<'_>, path: &str, value: &Value) {
    match number(value) {
        Some(uid) => {
            draft.set_service("auth.identities.default.uid", uid.into());
            draft.carried(path, "auth.identities.default.uid");
        }
        None => draft.open(
            path,
            "let labs run as root, or as whatever their image says",
            "Labs run as a user of their own, never as root: `auth.identities` says which",
        ),
    }
}

pub(crate) fn gid(draft: &mut Draft<'_>, path: &str, value: &Value) {
    match number(value) {
        Some(gid) => {
            draft.groups.gid = Some(gid);
            set(draft);
            draft.carried_with(
                path,
                GID,
                "The group of the lab's processes, and of the files of claims that are made for a lab",
            );
        }
        None => open(draft, path),
    }
}

pub(crate) fn fs_gid(draft: &mut Draft<'_>, path: &str, value: &Value) {
    match number(value) {
        Some(gid) => {
            draft.groups.fs_gid = Some(gid);
            set(draft);
            let note = "A group of the lab's processes, and their main one unless `gid` names another one. Only claims that are made \
                        for a lab get their files changed to the main group";
            draft.carried_with(path, GROUPS, note);
        }
        None => open(draft, path),
    }
}

pub(crate) fn supplemental_gids(draft: &mut Draft<'_>, path: &str, value: &Value) {
    let ids: Option<Vec<u64>> = value.as_array().map(|ids| ids.iter().map_while(number).collect());
    match (ids, value.as_array().map(Vec::len)) {
        (Some(ids), Some(given)) if ids.len() == given && given > 0 => {
            draft.groups.further = ids;
            set(draft);
            draft.carried(path, GROUPS);
        }
        (_, Some(0)) => draft.not_needed(path, "has no value"),
        _ => draft.open(
            path,
            "gave labs further groups",
            "Write them to `auth.identities`, or let the identity provider say them",
        ),
    }
}

fn open(draft: &mut Draft<'_>, path: &str) {
    draft.open(
        path,
        "let labs have the group root, or that of their image",
        "`auth.identities` says the group of labs",
    );
}
