//! Privileged settings that the operator allows a policy to use.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::administrators::AdministratorLifts;
use crate::names::ObjectName;
use crate::values::path;
use crate::values::port_range::PortRange;

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
    /// Keys of labels and annotations of the pod and of volume claims that other programs act on: a key, or a prefix that
    /// ends with `/`, such as `sidecar.istio.io/`. Keys without a prefix need no grant, except those by which
    /// JupyterHub's own pods are found (`app`, `component`, `release`).
    pub metadata: Vec<String>,
    /// Ports on which the lab's program may listen instead of `lab.port`: a port such as `8787`, or a range such as
    /// `9000-9099`.
    pub ports: Vec<PortRange>,
    /// Names of service accounts in the lab's namespace under which labs may run. They are the operator's: the service
    /// never makes, changes or deletes them.
    pub service_accounts: Vec<ObjectName>,
    /// Parts of the security baseline that the policy may lift in labs of administrators: what `lab.administrators` of the
    /// site allows, too.
    pub administrators: Option<AdministratorLifts>,
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
    /// See [`Grants::metadata`].
    Metadata,
    /// See [`Grants::ports`].
    Ports,
    /// See [`Grants::service_accounts`].
    ServiceAccounts,
    /// See [`Grants::administrators`].
    Administrators,
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
            Self::Metadata => "metadata",
            Self::Ports => "ports",
            Self::ServiceAccounts => "service-accounts",
            Self::Administrators => "administrators",
        })
    }
}

/// A setting in a policy's answer that its grants do not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{author}: `{field}` needs the grant `{grant}`{}", Wanted(*.grant, .wanted.as_deref()))]
pub struct GrantViolation {
    /// The author of the answer, such as "policy `site`".
    pub author: String,
    /// The path of the field in the policy's answer.
    pub field: String,
    /// The grant that would allow it.
    pub grant: Grant,
    /// The value that a grant with a list would have to contain.
    pub wanted: Option<String>,
}

struct Wanted<'a>(Grant, Option<&'a str>);

impl fmt::Display for Wanted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(grant, wanted) = self;
        wanted.map_or(Ok(()), |wanted| write!(f, " for `{wanted}`"))?;
        if *grant == Grant::Administrators {
            f.write_str(
                ", and the site has to allow the same in `lab.administrators`, both for a group of the lab's user; kernels, Dask \
                 pools and labs in the pods of others never have it",
            )?;
        }
        Ok(())
    }
}

/// A setting in an answer that needs a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) field: String,
    pub(crate) grant: Grant,
    pub(crate) wanted: Option<String>,
}

impl Need {
    pub(crate) fn violated_by(self, author: &impl fmt::Display) -> GrantViolation {
        GrantViolation {
            author: author.to_string(),
            field: self.field,
            grant: self.grant,
            wanted: self.wanted,
        }
    }
}

impl Grants {
    /// Returns the kinds of grants that are given.
    pub fn given(&self) -> Vec<Grant> {
        let given = [
            (Grant::PrivilegedInit, self.privileged_init),
            (Grant::RunAsRootInit, self.run_as_root_init),
            (Grant::HostPath, !self.host_path.is_empty()),
            (Grant::RawHtml, self.raw_html),
            (Grant::PodPatch, !self.pod_patch.is_empty()),
            (Grant::Secrets, !self.secrets.is_empty()),
            (Grant::EnvPrefixesReservedOverride, self.env_prefixes_reserved_override),
            (Grant::Metadata, !self.metadata.is_empty()),
            (Grant::Ports, !self.ports.is_empty()),
            (Grant::ServiceAccounts, !self.service_accounts.is_empty()),
            (Grant::Administrators, self.administrators.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(grant, _)| grant).collect()
    }

    pub(crate) fn cover(&self, need: &Need) -> bool {
        let listed = |fits: &dyn Fn(&str) -> bool| need.wanted.as_deref().is_some_and(fits);
        match need.grant {
            Grant::PrivilegedInit => self.privileged_init,
            Grant::RunAsRootInit => self.run_as_root_init || self.privileged_init,
            Grant::HostPath => {
                listed(&|path| self.host_path.iter().any(|prefix| path::is_below(path, prefix)))
            }
            Grant::RawHtml => self.raw_html,
            Grant::PodPatch => {
                listed(&|field| self.pod_patch.iter().any(|prefix| path::is_field_at_or_below(field, prefix)))
            }
            Grant::Secrets => listed(&|name| self.secrets.iter().any(|granted| granted == name)),
            Grant::EnvPrefixesReservedOverride => self.env_prefixes_reserved_override,
            Grant::Metadata => listed(&|key| {
                self.metadata.iter().any(|granted| {
                    key == granted || granted.ends_with('/') && key.starts_with(granted.as_str())
                })
            }),
            // The lab's user decides about these, see `LiftRules`.
            Grant::Administrators => false,
            Grant::ServiceAccounts => {
                listed(&|name| self.service_accounts.iter().any(|granted| granted.as_str() == name))
            }
            Grant::Ports => listed(&|port| {
                port.parse().is_ok_and(|port| self.ports.iter().any(|range| range.contains(port)))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_lists_exactly_the_grants_of_the_configuration() {
        assert_eq!(Grants::default().given(), []);
        for (yaml, grant) in [
            ("privileged-init: true", Grant::PrivilegedInit),
            ("run-as-root-init: true", Grant::RunAsRootInit),
            ("host-path: [/data]", Grant::HostPath),
            ("raw-html: true", Grant::RawHtml),
            ("pod-patch: [spec.hostAliases]", Grant::PodPatch),
            ("secrets: [db]", Grant::Secrets),
            ("env-prefixes-reserved-override: true", Grant::EnvPrefixesReservedOverride),
            ("metadata: [sidecar.istio.io/]", Grant::Metadata),
            ("ports: [8787, 9000-9099]", Grant::Ports),
            ("service-accounts: [reader]", Grant::ServiceAccounts),
            ("administrators: {groups: [ops], root: true}", Grant::Administrators),
        ] {
            assert_eq!(serde_saphyr::from_str::<Grants>(yaml).unwrap().given(), [grant], "{yaml}");
        }
    }
}
