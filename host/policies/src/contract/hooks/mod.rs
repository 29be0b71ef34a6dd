//! The hooks of policies, one file each: the question, the answer, the conversion of both, and what a chain of policies
//! does with the answers.

pub(crate) mod authorize;
pub(crate) mod build_pod;
pub(crate) mod config;
pub(crate) mod events;
pub(crate) mod form;
pub(crate) mod images;
pub(crate) mod inject;
mod input;
pub(crate) mod lab_files;
pub(crate) mod lab_server;
pub(crate) mod metadata;
pub(crate) mod prepare;
pub(crate) mod quota;

use std::future::ready;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use wasmspawner_core::config::grants::Grants;
use wasmspawner_core::names::Fields;
use wasmspawner_core::policy::Subject;
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use super::bindings::{VERSION, hooks as wit, types};
use super::call_state::CallState;
use super::convert;
use super::guest::{Calling, Guest, WrongType};
use crate::errors::{CallErrorKind, LoadErrorKind};
use crate::limits::Limits;
use crate::names::hook::Hook;
use crate::names::policy_name::PolicyName;

/// A question to a policy: one function of an interface, with its arguments.
pub(crate) trait Question: Clone + Send + Sync + 'static {
    /// The function that answers.
    const HOOK: Hook;
    /// The policies of the chain that are asked.
    const ASKED: Asked = Asked::All;
    /// True if a policy that fails may be skipped (`on_failure: skip`), because it neither limits nor denies.
    const SKIPPABLE: bool = false;

    /// The interface that has the function.
    type Interface;
    /// The answer, in the core's types.
    type Answer: Serialize + Send + 'static;

    /// Returns the interface; `None` if the component does not export it.
    fn interface(exports: &Exports) -> Option<&Self::Interface>;

    /// Returns the call of the function, with the question converted to the contract's types.
    fn call(&self, interface: &Self::Interface) -> Calling<Self::Answer>;

    /// Returns what the question is about, for the host's functions that the policy may call.
    fn about(&self) -> About {
        About::default()
    }

    /// Returns the limits for this call.
    fn limits(limits: Limits) -> Limits {
        limits
    }

    /// Checks an answer of a policy that has these grants, beyond its type.
    fn check(
        answer: Self::Answer,
        _policy: &PolicyName,
        _grants: &Grants,
    ) -> Result<Self::Answer, CallErrorKind> {
        Ok(answer)
    }

    /// True if no further policy is asked after this answer.
    fn is_last(_answer: &Self::Answer) -> bool {
        false
    }

    /// Returns the question as input of `wasmspawner policy run`, without data that identify a person, except the
    /// username. `None` if candidates are not asked.
    fn input(&self) -> Option<Value> {
        None
    }
}

/// The policies of a chain that are asked a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All of them, in the order of the chain.
    All,
    /// All of them, the last one first.
    LastFirst,
    /// The last one that exports the interface, and no other.
    Last,
}

/// The lab and child that a question is about, if any.
#[derive(Clone, Default)]
pub(crate) struct About {
    pub(crate) lab: Option<Arc<Fields>>,
    pub(crate) subject: Subject,
}

impl From<Subject> for About {
    fn from(subject: Subject) -> Self {
        Self { lab: None, subject }
    }
}

/// Defines the interfaces that a policy may export, besides `metadata`, which each of them exports.
macro_rules! exports {
    ($($interface:ident $name:literal,)*) => {
        /// The interfaces that a component exports.
        pub(crate) struct Exports {
            metadata: wit::metadata::GuestIndices,
            $($interface: Option<wit::$interface::GuestIndices>,)*
        }

        impl Exports {
            /// The names of all interfaces.
            pub(crate) const NAMES: &[&str] = &["metadata", $($name),*];

            /// Looks up the interfaces. Fails if one lacks a function, or has one of another type.
            pub(crate) fn find(component: &InstancePre<CallState>) -> Result<Self, LoadErrorKind> {
                Ok(Self {
                    metadata: wit::metadata::GuestIndices::new(component).map_err(incompatible)?,
                    $($interface: find(component, $name, wit::$interface::GuestIndices::new)?,)*
                })
            }

            /// Returns the names of the interfaces that the component exports, besides `metadata`.
            pub(crate) fn names(&self) -> Vec<&'static str> {
                let all = [$(($name, self.$interface.is_some())),*];
                all.into_iter().filter_map(|(name, exported)| exported.then_some(name)).collect()
            }

            fn load(&self, store: &mut Store<CallState>, instance: &Instance) -> wasmtime::Result<()> {
                self.metadata.load(&mut *store, instance)?;
                $(if let Some(interface) = &self.$interface {
                    interface.load(&mut *store, instance)?;
                })*
                Ok(())
            }
        }
    };
}

exports! {
    config "config",
    prepare "prepare",
    form "form",
    quota "quota",
    authorize "authorize",
    inject "inject",
    events "events",
    build_pod "build-pod",
    lab_server "lab-server",
    lab_files "lab-files",
    images "images",
}

impl Exports {
    /// Returns a call that checks the types of all functions that the component exports.
    pub(crate) fn check_types(self: &Arc<Self>) -> Calling<()> {
        let exports = Arc::clone(self);
        Box::new(move |Guest { mut store, instance }| {
            let checked = exports.load(&mut store, &instance);
            Box::pin(ready((store, checked.map(Ok).map_err(|error| WrongType::from(error).into()))))
        })
    }
}

fn find<T>(
    component: &InstancePre<CallState>,
    interface: &str,
    look_up: impl FnOnce(&InstancePre<CallState>) -> wasmtime::Result<T>,
) -> Result<Option<T>, LoadErrorKind> {
    let name = format!("wasmspawner:policy/{interface}@{VERSION}");
    if component.component().get_export_index(None, name).is_none() {
        return Ok(None);
    }
    look_up(component).map(Some).map_err(incompatible)
}

fn incompatible(error: wasmtime::Error) -> LoadErrorKind {
    LoadErrorKind::Trial(CallErrorKind::Incompatible(WrongType::from(error).0))
}

/// Calls one function of an interface, and converts its answer with `$convert`.
macro_rules! call {
    ($indices:ident, |$exports:ident, $store:ident| $call:expr, $convert:expr) => {{
        let indices = $indices.clone();
        Box::new(move |guest| {
            Box::pin(async move {
                let $crate::contract::guest::Guest { store: mut $store, instance } = guest;
                let answer = match indices.load(&mut $store, &instance) {
                    Ok($exports) => $call.await.map($convert),
                    Err(error) => Err($crate::contract::guest::WrongType::from(error).into()),
                };
                ($store, answer)
            })
        })
    }};
}
use call;

fn refusal(error: types::Error) -> CallErrorKind {
    convert::hook_error(error).into()
}

fn invalid(errors: Vec<types::FieldError>) -> CallErrorKind {
    CallErrorKind::invalid(convert::field_errors(errors))
}
