//! Who does not allow something.

use wasmspawner_core::policy::compose::Source;

use crate::wasm::Hook;

/// Who does not allow something, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedBy {
    /// A policy, the configuration, or the identity provider.
    pub source: Source,
    /// The hook of the policy, the key of the configuration, or the limit: `authorize.decide`, `limits.per_user.labs`.
    pub rule: String,
}

impl DeniedBy {
    /// A policy, with the hook whose answer it was.
    pub(super) fn policy(name: impl Into<String>, hook: Hook) -> Self {
        Self { source: Source::Policy(name.into()), rule: hook.name().to_owned() }
    }

    /// A key of the configuration.
    pub(super) fn configuration(key: &str) -> Self {
        Self { source: Source::Configuration, rule: key.to_owned() }
    }

    /// The identity provider, which says what the user may have.
    pub(super) fn identity_provider() -> Self {
        Self { source: Source::IdentityProvider, rule: "quota.spawn".to_owned() }
    }

    /// What policies, the identity provider and the configuration allow together of CPU and memory.
    pub(super) fn quota() -> Self {
        Self { source: Source::Service, rule: "quota".to_owned() }
    }
}
