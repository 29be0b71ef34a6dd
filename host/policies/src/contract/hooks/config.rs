//! `config`: checks a policy's configuration.

use std::sync::Arc;

use super::{Exports, Question, call, invalid};
use crate::contract::bindings::hooks::config as wit;
use crate::contract::guest::Calling;
use crate::names::hook::Hook;
use crate::names::message::{MESSAGES, message};

/// Asks whether a configuration, as JSON, is valid. The answer is the warnings about it.
#[derive(Clone)]
pub(crate) struct Validate(pub(crate) Arc<str>);

impl Question for Validate {
    const HOOK: Hook = Hook::new("config.validate");

    type Interface = wit::GuestIndices;
    type Answer = Vec<String>;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.config.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<Vec<String>> {
        let config = Arc::clone(&self.0);
        call!(interface, |exports, store| exports.call_validate(&mut store, &config), |answer| {
            answer.map(|warnings| warnings.into_iter().take(MESSAGES).map(message).collect()).map_err(invalid)
        })
    }
}
