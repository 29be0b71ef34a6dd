use crate::bindings::authorize::Verdict;
use crate::bindings::inject::Verdict as InjectVerdict;
use crate::bindings::types::{Denial, Error};

impl Denial {
    /// A denial by a rule of this policy, such as `gpu-hours`. Administrators see the name of the rule.
    pub fn by_rule(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), rule: Some(rule.into()) }
    }
}

impl From<String> for Denial {
    fn from(message: String) -> Self {
        Self { message, rule: None }
    }
}

impl From<&str> for Denial {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl Error {
    /// A denial of the action: a message for the user, or a [`Denial`] with the name of the rule.
    pub fn denied(denial: impl Into<Denial>) -> Self {
        Self::Denied(denial.into())
    }
}

impl Verdict {
    /// A denial of the action: a message for the user, or a [`Denial`] with the name of the rule.
    pub fn deny(denial: impl Into<Denial>) -> Self {
        Self::Deny(denial.into())
    }
}

impl InjectVerdict {
    /// A denial of a lab in this workload: a message for the user, or a [`Denial`] with the name of the rule.
    pub fn deny(denial: impl Into<Denial>) -> Self {
        Self::Deny(denial.into())
    }
}
