use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Customization, EnvValue, EnvVar, SecurityProfile, VolumeSource, path, pod_patch};
use crate::form::Form;

/// Privileged settings that the operator allows one policy to use. They are part of the operator's configuration, and
/// never of the policy's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "independent grants, each named in the configuration")]
pub struct Grants {
    /// Allows init containers with the profile `privileged`.
    pub privileged_init: bool,
    /// Allows init containers with the profile `baseline`, which may run as root.
    pub run_as_root_init: bool,
    /// Paths of the node that may be mounted, with everything below them. May contain template fields.
    pub host_path: Vec<String>,
    /// Allows a form that is the policy's own HTML.
    pub raw_html: bool,
    /// Paths of the Pod that a patch may set, with everything below them; dotted and without list positions:
    /// `spec.hostAliases`, `spec.containers.lifecycle`.
    pub pod_patch: Vec<String>,
    /// Names of Secrets in the lab's namespace that may be used. May contain template fields.
    pub secrets: Vec<String>,
    /// Allows to set environment variables that are reserved for the Hub.
    pub env_prefixes_reserved_override: bool,
}

/// One kind of grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// See [`Grants::privileged_init`].
    PrivilegedInit,
    /// See [`Grants::run_as_root_init`].
    RunAsRootInit,
    /// See [`Grants::host_path`].
    HostPath,
    /// See [`Grants::raw_html`].
    RawHtml,
    /// See [`Grants::pod_patch`].
    PodPatch,
    /// See [`Grants::secrets`].
    Secrets,
    /// See [`Grants::env_prefixes_reserved_override`].
    EnvPrefixesReservedOverride,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PrivilegedInit => "privileged-init",
            Self::RunAsRootInit => "run-as-root-init",
            Self::HostPath => "host-path",
            Self::RawHtml => "raw-html",
            Self::PodPatch => "pod-patch",
            Self::Secrets => "secrets",
            Self::EnvPrefixesReservedOverride => "env-prefixes-reserved-override",
        })
    }
}

/// A setting in a policy's answer that its grants do not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy `{policy}`: `{field}` needs the grant `{grant}`{}", Wanted(.wanted))]
pub struct GrantViolation {
    /// The policy's name.
    pub policy: String,
    /// The path of the field in the policy's answer.
    pub field: String,
    /// The grant that would allow it.
    pub grant: Grant,
    /// The value that a grant with a list would have to contain.
    pub wanted: Option<String>,
}

struct Wanted<'a>(&'a Option<String>);

impl fmt::Display for Wanted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |wanted| write!(f, " for `{wanted}`"))
    }
}

/// A setting in an answer that needs a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) field: String,
    pub(crate) grant: Grant,
    pub(crate) wanted: Option<String>,
}

/// Checks a policy's answer against its grants, and returns the grants that it used. `reserved` returns whether the
/// site reserves the environment variable of that name.
pub(crate) fn check(
    policy: &str,
    asked: &Customization,
    reserved: impl Fn(&str) -> bool,
    grants: &Grants,
) -> Result<Vec<Need>, Vec<GrantViolation>> {
    let (granted, denied): (Vec<_>, Vec<_>) =
        needs(asked, reserved).into_iter().partition(|need| grants.cover(need));
    if denied.is_empty() {
        Ok(granted)
    } else {
        Err(denied.into_iter().map(|need| need.violated_by(policy)).collect())
    }
}

/// Checks a form: a policy needs a grant to put its own HTML on the Hub's page.
pub fn check_form(policy: &str, form: &Form, grants: &Grants) -> Result<(), GrantViolation> {
    match form {
        Form::Html(_) if !grants.raw_html => {
            Err(Need { field: "html".to_owned(), grant: Grant::RawHtml, wanted: None }.violated_by(policy))
        }
        _ => Ok(()),
    }
}

impl Need {
    pub(crate) fn violated_by(self, policy: &str) -> GrantViolation {
        GrantViolation {
            policy: policy.to_owned(),
            field: self.field,
            grant: self.grant,
            wanted: self.wanted,
        }
    }
}

impl Grants {
    /// The kinds of grants that are given.
    pub fn given(&self) -> Vec<Grant> {
        let given = [
            (Grant::PrivilegedInit, self.privileged_init),
            (Grant::RunAsRootInit, self.run_as_root_init),
            (Grant::HostPath, !self.host_path.is_empty()),
            (Grant::RawHtml, self.raw_html),
            (Grant::PodPatch, !self.pod_patch.is_empty()),
            (Grant::Secrets, !self.secrets.is_empty()),
            (Grant::EnvPrefixesReservedOverride, self.env_prefixes_reserved_override),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(grant, _)| grant).collect()
    }

    fn cover(&self, need: &Need) -> bool {
        let listed = |fits: &dyn Fn(&str) -> bool| need.wanted.as_deref().is_some_and(fits);
        match need.grant {
            Grant::PrivilegedInit => self.privileged_init,
            Grant::RunAsRootInit => self.run_as_root_init || self.privileged_init,
            Grant::HostPath => {
                listed(&|path| self.host_path.iter().any(|prefix| path::is_below(path, prefix)))
            }
            Grant::RawHtml => self.raw_html,
            Grant::PodPatch => {
                listed(&|field| self.pod_patch.iter().any(|prefix| pod_patch::is_at_or_below(field, prefix)))
            }
            Grant::Secrets => listed(&|name| self.secrets.iter().any(|granted| granted == name)),
            Grant::EnvPrefixesReservedOverride => self.env_prefixes_reserved_override,
        }
    }
}

/// Every setting in an answer that needs a grant, in the order of its fields.
fn needs(asked: &Customization, reserved: impl Fn(&str) -> bool) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut need = |field: String, grant, wanted| needs.push(Need { field, grant, wanted });
    let mut secrets_of = |prefix: &str, env: &[EnvVar]| {
        for (at, var) in env.iter().enumerate() {
            if let EnvValue::SecretRef(key) = &var.value {
                need(format!("{prefix}env[{at}].value.secret_ref"), Grant::Secrets, Some(key.name.clone()));
            }
        }
    };
    secrets_of("", &asked.env);
    for (at, init) in asked.init_containers.iter().enumerate() {
        secrets_of(&format!("init_containers[{at}]."), &init.env);
    }
    for (at, volume) in asked.volumes.iter().enumerate() {
        match &volume.source {
            VolumeSource::Secret(secret) => {
                need(format!("volumes[{at}].source.secret"), Grant::Secrets, Some(secret.name.clone()));
            }
            VolumeSource::HostPath(path) => {
                need(format!("volumes[{at}].source.host_path"), Grant::HostPath, Some(path.clone()));
            }
            _ => {}
        }
    }
    for (at, init) in asked.init_containers.iter().enumerate() {
        let field = format!("init_containers[{at}].profile");
        match init.profile {
            SecurityProfile::Restricted => {}
            SecurityProfile::Baseline => need(field, Grant::RunAsRootInit, None),
            SecurityProfile::Privileged => need(field, Grant::PrivilegedInit, None),
        }
    }
    if let Some(patch) = &asked.pod_patch {
        for path in pod_patch::paths(patch) {
            need("pod_patch".to_owned(), Grant::PodPatch, Some(path));
        }
        let reach = pod_patch::reach(patch);
        for path in reach.host_paths {
            need("pod_patch".to_owned(), Grant::HostPath, Some(path));
        }
        for name in reach.secrets {
            need("pod_patch".to_owned(), Grant::Secrets, Some(name));
        }
    }
    for (at, var) in asked.env.iter().enumerate().filter(|(_, var)| reserved(&var.name)) {
        let wanted = Some(var.name.clone());
        needs.push(Need {
            field: format!("env[{at}].name"),
            grant: Grant::EnvPrefixesReservedOverride,
            wanted,
        });
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEDY: &str = r#"
env:
  - {name: DB, value: {secret_ref: {name: db, key: password}}}
volumes:
  - {name: data, source: {host_path: /data/shared/x}}
  - {name: creds, source: {secret: {name: creds}}}
init_containers:
  - {name: setup, image: busybox, profile: privileged}
  - {name: chown, image: busybox, profile: baseline}
pod_patch: '{"spec":{"hostAliases":[{"ip":"10.0.0.1","hostnames":["db"]}]}}'
"#;

    #[test]
    fn everything_beyond_the_ordinary_needs_its_grant() {
        let asked: Customization = serde_saphyr::from_str(GREEDY).unwrap();
        let violations = check("greedy", &asked, |_| false, &Grants::default()).unwrap_err();
        let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "policy `greedy`: `env[0].value.secret_ref` needs the grant `secrets` for `db`",
                "policy `greedy`: `volumes[0].source.host_path` needs the grant `host-path` for `/data/shared/x`",
                "policy `greedy`: `volumes[1].source.secret` needs the grant `secrets` for `creds`",
                "policy `greedy`: `init_containers[0].profile` needs the grant `privileged-init`",
                "policy `greedy`: `init_containers[1].profile` needs the grant `run-as-root-init`",
                "policy `greedy`: `pod_patch` needs the grant `pod-patch` for `spec.hostAliases.hostnames`",
                "policy `greedy`: `pod_patch` needs the grant `pod-patch` for `spec.hostAliases.ip`",
            ]
        );
    }

    #[test]
    fn grants_allow_what_they_list_and_no_more() {
        let asked: Customization = serde_saphyr::from_str(GREEDY).unwrap();
        let grants: Grants = serde_saphyr::from_str(
            "{privileged-init: true, host-path: [/data], secrets: [db, creds], pod-patch: [spec.hostAliases]}",
        )
        .unwrap();
        assert_eq!(check("greedy", &asked, |_| false, &grants).unwrap().len(), 7);
        let narrower = Grants { host_path: vec!["/data/shar".to_owned()], ..grants };
        assert_eq!(check("greedy", &asked, |_| false, &narrower).unwrap_err()[0].grant, Grant::HostPath);
    }

    #[test]
    fn an_unknown_grant_is_an_error() {
        let error = serde_saphyr::from_str::<Grants>("{privileged-inits: true}").unwrap_err().to_string();
        assert!(error.contains("privileged-inits") && error.contains("privileged-init"), "{error}");
    }
}
