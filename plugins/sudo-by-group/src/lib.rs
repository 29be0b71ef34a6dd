//! Members of some groups are root in their labs with `sudo`. README.md says what the site has to allow for that, and
//! what these users can then do.

use wasmspawner_sdk::pod::{Customization, InitContainer, Mount, SecurityProfile, Volume};
use wasmspawner_sdk::{Error, Info, Options, Policy, Section, User, export, hooks, host};

/// Writes the rule of sudo. Only root may own the file, and nobody may write to it. The number of the user is the one
/// that the lab runs as. The user of a lab has no entry in `/etc/shadow`, so PAM's check for expired accounts would
/// refuse everybody.
const WRITE_RULE: &str = r#"umask 0337 && printf 'Defaults:#%s !pam_acct_mgmt
#%s ALL=(ALL:ALL) NOPASSWD: ALL
' "$NB_UID" "$NB_UID" > /rules/lab"#;

/// The groups whose members may use sudo.
pub struct SudoByGroup {
    groups: Vec<String>,
    image: String,
}

impl Policy for SudoByGroup {
    fn info() -> Info {
        Info {
            name: "sudo-by-group".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Root in the lab for members of some groups".into(),
        }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        Self { groups: config.required("groups"), image: config.required("image") }
    }
}

impl hooks::BuildPod for SudoByGroup {
    fn customize(&self, user: &User, _server: &str, _options: &Options) -> Result<Customization, Error> {
        let mut lab = Customization::default();
        // Kernels and Dask pools have no init containers, so no container would write the rule.
        if !user.is_in_any(&self.groups) || host::child().is_some() {
            return Ok(lab);
        }
        lab.volumes.push(Volume::empty_dir("sudo-rules"));
        lab.init_containers.push(InitContainer {
            command: ["sh", "-c", WRITE_RULE].map(str::to_owned).into(),
            mounts: vec![Mount::new("sudo-rules", "/rules")],
            profile: SecurityProfile::Baseline,
            ..InitContainer::new("sudo-rule", &self.image)
        });
        // Only the file is mounted, so that the image's other rules stay.
        lab.mounts.push(Mount::new("sudo-rules", "/etc/sudoers.d/lab-user").sub_path("lab").read_only());
        Ok(lab)
    }
}

export!(SudoByGroup: build_pod);

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::json;
    use wasmspawner_sdk::host::{ChildKind, ChildOfLab};
    use wasmspawner_sdk::testing::{Subject, TestKit, about};

    use super::*;

    fn lab(user: &User, child: Option<ChildOfLab>) -> Customization {
        let config = json!({"groups": ["staff", "admins"], "image": "busybox:1.37"});
        let policy = TestKit::<SudoByGroup>::new(&config).unwrap();
        about(&Subject { child, ..Subject::default() }, || policy.customize(user, &json!({})).unwrap())
    }

    #[test]
    fn only_members_get_the_rule_and_cannot_change_it() {
        let ada = User::named("ada").in_group("staff");
        let members = lab(&ada, None);
        let mount = &members.mounts[0];
        assert!(mount.read_only && mount.sub_path.is_some(), "{mount:?}");
        assert!(matches!(members.init_containers[0].profile, SecurityProfile::Baseline));
        let kernel = ChildOfLab { kind: ChildKind::Kernel, name: "python3".into(), workers: 0 };
        for nothing in [lab(&User::named("eve").in_group("staffx"), None), lab(&ada, Some(kernel))] {
            assert!(nothing.mounts.is_empty() && nothing.volumes.is_empty());
            assert!(nothing.init_containers.is_empty());
        }
    }

    #[test]
    fn the_rule_is_for_the_number_that_the_lab_runs_as() {
        let folder = std::env::temp_dir().join(format!("sudo-rule-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = WRITE_RULE.replace("/rules", folder.to_str().unwrap());
        let ended = Command::new("sh").args(["-c", &script]).env("NB_UID", "4242").status().unwrap();
        let rule = std::fs::read_to_string(folder.join("lab")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(ended.success());
        assert_eq!(rule, "Defaults:#4242 !pam_acct_mgmt\n#4242 ALL=(ALL:ALL) NOPASSWD: ALL\n");
    }

    #[test]
    fn groups_and_image_are_needed() {
        let problems = TestKit::<SudoByGroup>::new(&json!({})).err().unwrap();
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["/groups", "/image"]);
    }
}
