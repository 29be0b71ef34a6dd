//! Who does not allow something.

use wasmspawner_core::policy::compose::Source;

use wasmspawner_policies::{Hook, PolicyName};

/// Who does not allow something, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedBy {
    /// A policy, the configuration, or the identity provider.
    pub source: Source,
    /// The rule of the policy, or the hook where the rule has no name; the key of the configuration, or the limit:
    /// `gpu-hours`, `authorize.decide`, `limits.per_user.labs`.
    pub rule: String,
}

impl DeniedBy {
    /// A policy, by its rule, or else by the hook whose answer it was.
    pub(crate) fn policy(policy: &PolicyName, hook: Hook, rule: Option<String>) -> Self {
        let rule = rule.unwrap_or_else(|| hook.name().to_owned());
        Self { source: Source::Policy(policy.to_string()), rule }
    }

    /// A key of the configuration.
    pub(crate) fn configuration(key: &str) -> Self {
        Self { source: Source::Configuration, rule: key.to_owned() }
    }

    /// The identity provider, which says what the user may have.
    pub(crate) fn identity_provider() -> Self {
        Self { source: Source::IdentityProvider, rule: "quota.spawn".to_owned() }
    }

    /// What policies, the identity provider and the configuration allow together of CPU and memory.
    pub(crate) fn quota() -> Self {
        Self { source: Source::Service, rule: "quota".to_owned() }
    }
}
