use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The first lines of the lab's `/etc/passwd` and `/etc/group`. The service appends the lines of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UserFiles {
    /// The first lines of `/etc/passwd`.
    pub passwd: String,
    /// The first lines of `/etc/group`.
    pub group: String,
    /// The user's home, as `/etc/passwd`, the field `{home}` and `NB_HOME` have it. Template, such as
    /// `/home/{username:.1}/{username}`.
    pub home: String,
}

impl Default for UserFiles {
    fn default() -> Self {
        Self { passwd: PASSWD.to_owned(), group: GROUP.to_owned(), home: HOME.to_owned() }
    }
}

/// The home of a user whom the site does not give another: with the username as it is, and not its slug.
pub(super) const HOME: &str = "/home/{unescaped_username}";

/// The accounts that own files in common images.
const PASSWD: &str = "\
root:x:0:0:root:/root:/bin/bash
bin:x:1:1:bin:/bin:/usr/sbin/nologin
daemon:x:2:2:daemon:/usr/sbin:/usr/sbin/nologin
mail:x:8:8:mail:/var/mail:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
";

const GROUP: &str = "\
root:x:0:
bin:x:1:
daemon:x:2:
sys:x:3:
adm:x:4:
tty:x:5:
disk:x:6:
mail:x:8:
users:x:100:
nogroup:x:65534:
";
