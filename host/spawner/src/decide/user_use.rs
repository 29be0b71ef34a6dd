//! What a user has, and has used.

use std::sync::Arc;

use wasmspawner_core::names::Username;
use wasmspawner_core::past_use::DaysOfUser;
use wasmspawner_core::policy::PresentUse;

use wasmspawner_history::History;

/// What a user has beside what is asked for, and has used in past days.
#[derive(Clone, Default)]
pub(crate) struct UserUse {
    pub(crate) present: PresentUse,
    pub(crate) past: Arc<DaysOfUser>,
}

impl UserUse {
    pub(crate) fn of(present: PresentUse, history: &History, user: &Username) -> Self {
        Self { present, past: Arc::new(history.days_of(user)) }
    }
}
