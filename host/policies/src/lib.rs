//! Policies: WebAssembly components that decide what a site's labs look like.
//!
//! Every call runs on a fresh instance with a deadline, a memory limit and a limited size of the answer. The result is
//! plain data of `wasmspawner_core`, or a [`CallError`] that names the policy and the hook. Read it in this order:
//! [`Policies`] (the chain in use, which other modules call), `loader` (from a file to a checked policy), `policy` (one
//! policy and its hooks), `engine` (one call), `compiler` (a process that compiles), `hook_table` (the hooks of a
//! component), `package` (the WIT package, which alone uses the generated types).

mod artifact;
mod background;
mod cache;
mod call;
mod call_state;
mod candidate;
mod candidate_report;
mod chain;
mod chain_loader;
mod checked_answer;
mod compiler;
mod component_source;
mod engine;
mod engine_config;
mod errors;
mod event_queue;
mod hook;
mod hook_alone;
mod hook_table;
mod inspect;
mod last_good;
mod limits;
mod link;
mod loaded_policy;
mod loader;
mod machine_memory;
mod message;
mod package;
mod patience;
mod policy;
mod policy_name;
mod prepared;
mod pulled;
mod pushed;
mod question;
mod reload;
mod shared_memory;
mod signature;
mod site_data;
mod slots;
mod spec;
mod time_slice;
mod told;
mod version_record;
mod watched_files;

pub use artifact::download;
pub use candidate_report::{CandidateReport, DifferentAnswer};
pub use chain::{FailedPolicies, Policies, PolicyAnswer};
pub use compiler::{COMMAND as COMPILE_COMMAND, Compiler, compile_standard_input};
pub use component_source::ComponentSource;
pub use engine::{CallRecord, EngineOptions, OnCall, OnCompared};
pub use errors::{CallBlame, CallError, CallErrorKind, EngineError, LoadError, LoadErrorKind};
pub use hook::Hook;
pub use inspect::{InspectedPolicy, inspect};
pub use limits::Limits;
pub use loaded_policy::{LastGoodReport, LoadedPolicy};
pub use patience::Patience;
pub use policy_name::PolicyName;
pub use pushed::artifact;
pub use signature::{NotSigned, WrongKey};
pub use site_data::DataReport;
pub use spec::PolicySpec;
pub use told::told;
