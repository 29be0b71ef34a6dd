use std::fmt;

use serde::Serialize;

/// One function of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "&'static str")]
pub enum Hook {
    /// Who the policy is.
    Describe,
    /// Checks the configuration.
    Validate,
    /// The spawn form.
    RenderForm,
    /// A submission becomes options.
    ParseForm,
    /// How much a user may have.
    Quota,
    /// May this happen?
    Authorize,
    /// What the pod looks like.
    BuildPod,
}

impl Hook {
    /// The hook's interface and function in `wit/`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Describe => "metadata.describe",
            Self::Validate => "config.validate",
            Self::RenderForm => "form.render",
            Self::ParseForm => "form.parse",
            Self::Quota => "quota.limits",
            Self::Authorize => "authorize.decide",
            Self::BuildPod => "build-pod.customize",
        }
    }
}

impl From<Hook> for &'static str {
    fn from(hook: Hook) -> Self {
        hook.name()
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
