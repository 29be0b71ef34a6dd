//! A policy that denies labs to groups, or allows them only to some. It exports no other hook, so it can be combined
//! with any other policy in a chain.

use wasmspawner_sdk::{Action, AuthorizeRequest, Error, Info, Policy, Section, Verdict, export, hooks};

/// The groups that may or may not start labs.
pub struct DenyGroup {
    deny: Vec<String>,
    allow: Vec<String>,
    actions: Vec<Action>,
    message: String,
}

/// The actions that can be refused, by name. A stop is never refused.
const ACTIONS: [(&str, Action); 4] = [
    ("spawn", Action::Spawn),
    ("start-kernel", Action::StartKernel),
    ("dask-pool", Action::DaskPool),
    ("scale", Action::Scale),
];

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
        let named: Option<Vec<String>> = config.optional("actions");
        let mut actions = Vec::new();
        for name in named.unwrap_or_else(|| ACTIONS.map(|(name, _)| name.to_owned()).to_vec()) {
            match ACTIONS.iter().find(|(known, _)| *known == name) {
                Some((_, action)) => actions.push(*action),
                None => config.problem(
                    "actions",
                    format!("`{name}` is not an action; write spawn, start-kernel, dask-pool or scale"),
                ),
            }
        }
        let message =
            config.optional("message").unwrap_or_else(|| "Your groups may not start a lab here.".into());
        Self { deny, allow, actions, message }
    }
}

impl hooks::Authorize for DenyGroup {
    /// Never refuses a stop: users who may not start a lab must still be able to stop their own.
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error> {
        if !self.actions.contains(&request.action) {
            return Ok(Verdict::Allow);
        }
        let user = &request.user;
        let kept_out = user.is_in_any(&self.deny) || !(self.allow.is_empty() || user.is_in_any(&self.allow));
        Ok(if kept_out { Verdict::deny(self.message.as_str()) } else { Verdict::Allow })
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
        assert_eq!(verdict(&config, &guest), Verdict::deny("Not for guests."));
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
    fn only_the_named_actions_are_refused() {
        let eve = User::named("eve").in_group("guests");
        let config = json!({"deny": ["guests"], "actions": ["start-kernel"]});
        assert_eq!(verdict(&config, &eve), Verdict::Allow);
        let policy = |config: &serde_json::Value| TestKit::<DenyGroup>::new(config);
        let kernel = policy(&config).unwrap().may(Action::StartKernel, &eve).unwrap();
        assert!(matches!(kernel, Verdict::Deny(_)));
        let all = policy(&json!({"deny": ["guests"]})).unwrap();
        assert!(matches!(all.may(Action::StartKernel, &eve).unwrap(), Verdict::Deny(_)));
        assert_eq!(all.may(Action::Stop, &eve).unwrap(), Verdict::Allow);
        let wrong = policy(&json!({"deny": ["guests"], "actions": ["kernels"]})).err().unwrap();
        assert!(wrong[0].message.contains("`kernels` is not an action"), "{wrong:?}");
    }

    #[test]
    fn a_configuration_without_groups_is_refused() {
        let problems = TestKit::<DenyGroup>::new(&json!({"denied": ["guests"]})).err().unwrap();
        let fields: Vec<&str> = problems.iter().map(|problem: &FieldError| problem.field.as_str()).collect();
        assert_eq!(fields, ["", "/denied"]);
    }
}
