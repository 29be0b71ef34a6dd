//! A policy that denies labs to groups, or allows them only to some. It exports no other hook, so it can be combined
//! with any other policy in a chain.

use wasmspawner_sdk::{Action, AuthorizeRequest, Error, Info, Policy, Section, Verdict, export, hooks};

/// The groups that may or may not start labs.
pub struct DenyGroup {
    deny: Vec<String>,
    allow: Vec<String>,
    message: String,
}

impl Policy for DenyGroup {
    fn info() -> Info {
        Info {
            name: "deny-group".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Keeps members of some groups from starting labs, or everybody else".into(),
        }
    }

    fn config_schema() -> &'static str {
        include_str!("../schema.json")
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        let deny: Vec<String> = config.or_default("deny");
        let allow: Vec<String> = config.or_default("allow");
        if deny.is_empty() && allow.is_empty() {
            config.problem("", "names no group; set `deny`, `allow` or both");
        }
        let message =
            config.optional("message").unwrap_or_else(|| "Your groups may not start a lab here.".into());
        Self { deny, allow, message }
    }
}

impl hooks::Authorize for DenyGroup {
    /// A stop is never refused: users who may not start a lab must still be able to stop their own.
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error> {
        if request.action == Action::Stop {
            return Ok(Verdict::Allow);
        }
        let user = &request.user;
        let kept_out = user.is_in_any(&self.deny) || !(self.allow.is_empty() || user.is_in_any(&self.allow));
        Ok(if kept_out { Verdict::Deny(self.message.clone()) } else { Verdict::Allow })
    }
}

export!(DenyGroup: authorize);

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wasmspawner_sdk::testing::TestKit;
    use wasmspawner_sdk::{FieldError, User};

    use super::*;

    fn verdict(config: &serde_json::Value, user: &User) -> Verdict {
        TestKit::<DenyGroup>::new(config).unwrap().may_spawn(user).unwrap()
    }

    #[test]
    fn members_of_a_denied_group_may_not_spawn() {
        let config = json!({"deny": ["guests"], "message": "Not for guests."});
        assert_eq!(verdict(&config, &User::named("ada")), Verdict::Allow);
        let guest = User::named("eve").in_group("guests");
        assert_eq!(verdict(&config, &guest), Verdict::Deny("Not for guests.".into()));
    }

    #[test]
    fn with_allow_only_members_of_its_groups_may_spawn() {
        let config = json!({"allow": ["staff"], "deny": ["guests"]});
        assert_eq!(verdict(&config, &User::named("ada").in_group("staff")), Verdict::Allow);
        assert!(matches!(verdict(&config, &User::named("eve")), Verdict::Deny(_)));
        let both = User::named("ada").in_group("staff").in_group("guests");
        assert!(matches!(verdict(&config, &both), Verdict::Deny(_)));
    }

    #[test]
    fn a_configuration_without_groups_is_refused() {
        let problems = TestKit::<DenyGroup>::new(&json!({"denied": ["guests"]})).err().unwrap();
        let fields: Vec<&str> = problems.iter().map(|problem: &FieldError| problem.field.as_str()).collect();
        assert_eq!(fields, ["", "/denied"]);
    }
}
