use wasmspawner_sdk::{Action, AuthorizeRequest, Denial, Error, Section, User, Verdict, hooks, host};

use crate::DefaultPolicy;

/// The users who may start labs. Without lists, every user may.
#[derive(Default)]
pub(crate) struct Access {
    allow_users: Vec<String>,
    allow_groups: Vec<String>,
    deny_users: Vec<String>,
    deny_groups: Vec<String>,
    message: Option<String>,
}

impl Access {
    pub(crate) fn read(config: &mut Section<'_>) -> Self {
        let read = config.section("authorize", |access| Self {
            allow_users: access.or_default("allow_users"),
            allow_groups: access.or_default("allow_groups"),
            deny_users: access.or_default("deny_users"),
            deny_groups: access.or_default("deny_groups"),
            message: access.optional("message"),
        });
        read.unwrap_or_default()
    }

    /// True if the user is allowed. A denial overrides an allowance.
    fn is_allowed(&self, user: &User) -> bool {
        let everybody = self.allow_users.is_empty() && self.allow_groups.is_empty();
        let allowed =
            everybody || self.allow_users.contains(&user.name) || user.is_in_any(&self.allow_groups);
        let denied = self.deny_users.contains(&user.name) || user.is_in_any(&self.deny_groups);
        allowed && !denied
    }
}

impl hooks::Authorize for DefaultPolicy {
    /// Never refuses a stop: users who may not start a lab must still be able to stop their own.
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error> {
        if request.action == Action::Stop {
            return Ok(Verdict::Allow);
        }
        if self.access.is_allowed(&request.user) {
            let limits = self.quotas.of_children(&request.user);
            let refused = host::child().and_then(|child| limits.refusal(&child, &host::present_use()));
            let refused = refused.map(|message| Denial::by_rule("quota", message));
            return Ok(refused.map_or(Verdict::Allow, Verdict::Deny));
        }
        let message = self.access.message.as_deref().unwrap_or("You may not start a lab here.");
        Ok(Verdict::deny(Denial::by_rule("authorize", message)))
    }
}
