//! The source of a denial.

use wasmspawner_core::policy::compose::Source;

use wasmspawner_policies::{Hook, PolicyName};

/// The source of a denial, and the rule behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedBy {
    /// A policy, the configuration, or the identity provider.
    pub source: Source,
    /// The name of the rule: that of a policy's rule, or the hook if the rule has no name; the key of the
    /// configuration; or the limit. Examples are `gpu-hours`, `authorize.decide` and `limits.per_user.labs`.
    pub rule: String,
}

impl DeniedBy {
    /// A denial by a policy's rule. If the rule has no name, the hook whose answer it was takes its place.
    pub(crate) fn policy(policy: &PolicyName, hook: Hook, rule: Option<String>) -> Self {
        let rule = rule.unwrap_or_else(|| hook.name().to_owned());
        Self { source: Source::Policy(policy.to_string()), rule }
    }

    /// A denial by a key of the configuration.
    pub(crate) fn configuration(key: &str) -> Self {
        Self { source: Source::Configuration, rule: key.to_owned() }
    }

    /// A denial by the identity provider, which says what the user may have.
    pub(crate) fn identity_provider() -> Self {
        Self { source: Source::IdentityProvider, rule: "quota.spawn".to_owned() }
    }

    /// A denial because of CPU and memory, as limited by the policies, the identity provider and the configuration
    /// together.
    pub(crate) fn quota() -> Self {
        Self { source: Source::Service, rule: "quota".to_owned() }
    }
}
