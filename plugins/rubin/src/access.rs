use wasmspawner_sdk::{Action, AuthorizeRequest, Error, Verdict, hooks};

use crate::RubinPolicy;

impl hooks::Authorize for RubinPolicy {
    /// Refuses starts by users whose quota forbids them. Never refuses a stop: users must still be able to stop their
    /// labs.
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error> {
        let allowed = request.user.quota.is_none_or(|quota| quota.spawn);
        if allowed || request.action == Action::Stop {
            return Ok(Verdict::Allow);
        }
        Ok(Verdict::deny("Your quota does not allow you to start labs at the moment."))
    }
}
