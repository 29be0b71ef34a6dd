//! `metadata`: a policy's description of itself. Every policy exports it.

use serde::Serialize;

use super::{Exports, Question, call};
use crate::contract::bindings::hooks::metadata as wit;
use crate::contract::guest::Calling;
use crate::names::hook::Hook;
use crate::names::message::message;

/// A policy's description of itself.
#[derive(Clone, Default, Serialize)]
pub(crate) struct PolicyInfo {
    pub(crate) title: String,
    pub(crate) version: String,
    pub(crate) description: String,
}

/// Asks for the policy's title, version and purpose.
#[derive(Clone)]
pub(crate) struct Describe;

impl Question for Describe {
    const HOOK: Hook = Hook::new("metadata.describe");

    type Interface = wit::GuestIndices;
    type Answer = PolicyInfo;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        Some(&exports.metadata)
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<PolicyInfo> {
        call!(interface, |exports, store| exports.call_describe(&mut store), |info| {
            Ok(PolicyInfo {
                title: message(info.name),
                version: message(info.version),
                description: message(info.description),
            })
        })
    }
}

/// Asks for the JSON Schema of the policy's configuration.
#[derive(Clone)]
pub(crate) struct ConfigSchema;

impl Question for ConfigSchema {
    const HOOK: Hook = Describe::HOOK;

    type Interface = wit::GuestIndices;
    type Answer = String;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        Some(&exports.metadata)
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<String> {
        call!(interface, |exports, store| exports.call_config_schema(&mut store), Ok)
    }
}
