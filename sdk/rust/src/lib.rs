//! Write wasmspawner policies in Rust.
//!
//! A policy is a struct that is created from its configuration ([`Policy`]). It implements a trait of [`hooks`] for
//! each thing it decides. [`export!`] makes it a component:
//!
//! ```
//! use wasmspawner_sdk::{Error, Info, Policy, Section, User, hooks, quota};
//!
//! struct OneLab;
//!
//! impl Policy for OneLab {
//!     fn info() -> Info {
//!         Info { name: "one-lab".into(), version: "1.0.0".into(), description: "One lab a user".into() }
//!     }
//!
//!     fn from_config(_: &mut Section<'_>) -> Self {
//!         Self
//!     }
//! }
//!
//! impl hooks::Quota for OneLab {
//!     fn limits(&self, _: &User, _: &quota::Usage) -> Result<quota::Quota, Error> {
//!         Ok(quota::Quota { labs: Some(1), ..Default::default() })
//!     }
//! }
//!
//! wasmspawner_sdk::export!(OneLab: quota);
//! ```
//!
//! Build with `crate-type = ["cdylib"]` for the target `wasm32-wasip2`; add `"rlib"` to run tests natively with
//! [`testing`]. The host creates a fresh instance for every call, so keep no state and do little work.

#[doc(hidden)]
pub mod bindings;
#[cfg(not(target_arch = "wasm32"))]
mod clock_stand_in;
#[doc(hidden)]
pub mod component;
pub mod config;
#[cfg(not(target_arch = "wasm32"))]
mod data_stand_in;
mod denial;
pub mod event;
pub mod form;
pub mod hooks;
pub mod host;
pub mod images;
#[cfg(not(target_arch = "wasm32"))]
mod images_stand_in;
pub mod inject;
pub mod lab_files;
pub mod lab_server;
#[cfg(not(target_arch = "wasm32"))]
mod lab_stand_in;
mod options;
pub mod pattern;
pub mod pod;
pub mod quantity;
pub mod quota;
#[cfg(not(target_arch = "wasm32"))]
mod subject_stand_in;
pub mod submission;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod user;
mod weekly_window;

pub use bindings::authorize::{Action, Request as AuthorizeRequest, Verdict};
pub use bindings::metadata::Info;
pub use bindings::types::{
    Denial, Error, FieldError, Group, Image, OptionEntry, Pair, User, UserQuota, Value,
};
pub use config::Section;
pub use hooks::Policy;
pub use options::Options;
pub use weekly_window::WeeklyWindow;
