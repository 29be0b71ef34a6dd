//! The present and the past use of a user.

use std::sync::Arc;

use wasmspawner_core::names::Username;
use wasmspawner_core::policy::PresentUse;
use wasmspawner_core::policy::usage::DaysOfUser;

use wasmspawner_history::History;

/// The user's present use besides the request, and the use in past days.
#[derive(Clone, Default)]
pub(crate) struct UserUse {
    pub(crate) present: PresentUse,
    pub(crate) past: Arc<DaysOfUser>,
}

impl UserUse {
    pub(crate) fn from_history(present: PresentUse, history: &History, user: &Username) -> Self {
        Self { present, past: Arc::new(history.days_of(user)) }
    }
}
