//! Policies: WebAssembly components that decide what a site's labs look like.
//!
//! Every call runs on a fresh instance with a deadline, a memory limit and a size limit for the answer. The result is
//! plain data of `wasmspawner_core`, or a [`CallError`] that names the policy and the hook. Read the modules in this
//! order: [`Policies`] (the chain in use, which other crates call), `policy` (one policy, from a file to a checked
//! component), `engine` (one call, and the process that compiles), `contract` (the WIT package and the hooks of a
//! component).

mod chain;
mod contract;
mod engine;
mod errors;
mod inspection;
mod limits;
mod names;
mod policy;
mod reports;
mod signature;
mod site_data;
mod source;

pub use chain::answer_json::answer_json;
pub use chain::{FailedPolicies, Policies, PolicyAnswer};
pub use engine::compiler::{COMMAND as COMPILE_COMMAND, Compiler, compile_standard_input};
pub use engine::{CallRecord, EngineOptions, OnCall, OnCompared};
pub use errors::{CallBlame, CallError, CallErrorKind, EngineError, LoadError, LoadErrorKind};
pub use inspection::inspect::{InspectedPolicy, inspect};
pub use inspection::publish::artifact;
pub use limits::Limits;
pub use limits::patience::Patience;
pub use names::hook::Hook;
pub use names::policy_name::PolicyName;
pub use reports::candidate_report::{CandidateReport, DifferentAnswer};
pub use reports::loaded_policy::{LastGoodReport, LoadedPolicy};
pub use signature::{NotSigned, WrongKey};
pub use site_data::DataReport;
pub use source::artifact::download;
pub use source::component_source::ComponentSource;
pub use source::spec::PolicySpec;
