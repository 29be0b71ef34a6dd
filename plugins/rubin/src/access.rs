use wasmspawner_sdk::{Action, AuthorizeRequest, Error, Verdict, hooks};

use crate::RubinPolicy;

impl hooks::Authorize for RubinPolicy {
    /// Users whose quota says so start nothing. A stop is never refused: they must still be able to stop their labs.
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error> {
        let allowed = request.user.quota.is_none_or(|quota| quota.spawn);
        if allowed || request.action == Action::Stop {
            return Ok(Verdict::Allow);
        }
        Ok(Verdict::deny("Your quota does not allow you to start labs at the moment."))
    }
}
