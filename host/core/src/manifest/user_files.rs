//! The lines of `/etc/passwd` and `/etc/group`.

use std::fmt::Write as _;

use crate::users::identity::{Identity, in_user_files};

/// Returns the base, and one line for the user with their name for people, their home and the shell `/bin/bash`.
pub(super) fn passwd(base: &str, identity: &Identity, home: &str) -> String {
    let name = in_user_files(identity.username.as_str());
    let Identity { uid, gid, .. } = identity;
    let shown = identity.display_name.as_deref().map(in_user_files).unwrap_or_default();
    format!("{base}{name}:x:{uid}:{gid}:{shown}:{home}:/bin/bash\n")
}

/// Returns the base, and one line for each group that has a GID. The user is listed as a member of all groups but their
/// primary one.
pub(super) fn group(base: &str, identity: &Identity) -> String {
    let mut file = base.to_owned();
    let user = in_user_files(identity.username.as_str());
    for group in &identity.groups {
        let Some(gid) = group.gid else { continue };
        let member = if gid == identity.gid { "" } else { &user };
        // Writing to a String cannot fail.
        let _ = writeln!(file, "{}:x:{gid}:{member}", in_user_files(&group.name));
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Username;
    use crate::users::identity::Group;

    fn rra() -> Identity {
        let group = |name: &str, gid| Group { name: name.to_owned(), gid };
        let groups = vec![
            group("lsst-data-management", Some(170_034)),
            group("rra", Some(4_266_950)),
            group("web-only", None),
        ];
        let rra = Username::parse("rra").unwrap();
        Identity { groups, ..Identity::with_numbers(rra, 4_266_950, 4_266_950) }
    }

    #[test]
    fn the_user_gets_one_line() {
        let expected = "root:x:0:0::/root:/bin/sh\nrra:x:4266950:4266950::/home/rra:/bin/bash\n";
        assert_eq!(passwd("root:x:0:0::/root:/bin/sh\n", &rra(), "/home/rra"), expected);
    }

    #[test]
    fn the_line_has_the_name_for_people() {
        let rachel = Identity { display_name: Some("Rachel: (?)\n".to_owned()), ..rra() };
        assert_eq!(passwd("", &rachel, "/u/r"), "rra:x:4266950:4266950:Rachel_ (?)_:/u/r:/bin/bash\n");
    }

    #[test]
    fn groups_without_gid_have_no_line_and_the_primary_group_no_member() {
        assert_eq!(group("", &rra()), "lsst-data-management:x:170034:rra\nrra:x:4266950:\n");
    }

    #[test]
    fn a_name_cannot_add_a_line_or_a_field() {
        let mut eve = rra();
        eve.username = Username::parse("eve:x:0:0,").unwrap();
        eve.groups = vec![Group { name: "x\nroot2:x:0:eve".to_owned(), gid: Some(5) }];
        let passwd = passwd("", &eve, &eve.home());
        assert_eq!((passwd.lines().count(), passwd.matches(':').count()), (1, 6));
        assert_eq!(group("", &eve), "x_root2_x_0_eve:x:5:eve_x_0_0_\n");
    }
}
