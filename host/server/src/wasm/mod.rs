//! Policies: WebAssembly components that decide what a site's labs look like.
//!
//! Every call runs on a fresh instance with a deadline, a memory limit and a limited size of the answer. The result is
//! plain data of `wasmspawner_core`, or a [`CallError`] that names the policy and the hook. Read it in this order:
//! [`Policies`] (the chain in use, which other modules call), `loader` (from a file to a checked policy), `policy` (one
//! policy and its hooks), `engine` (one call).
//!
//! The types generated from `wit/` are converted in `convert`; other modules never use them.

mod bindings;
mod cache;
mod chain;
mod convert;
mod digest;
mod engine;
mod errors;
mod exports;
mod hook;
mod imports;
mod limits;
mod loader;
mod policy;
mod policy_name;
mod spec;

pub use chain::{FailedPolicies, Policies, PolicyAnswer};
pub use digest::{Digest, DigestError};
pub use engine::{CallRecord, EngineOptions, OnCall};
pub use errors::{CallBlame, CallError, CallErrorKind, EngineError, LoadError, LoadErrorKind};
pub use hook::Hook;
pub use limits::Limits;
pub use policy::LoadedPolicy;
pub use policy_name::PolicyName;
pub use spec::PolicySpec;
