//! What a site's policies say, as plain data: the types of the WIT package `wasmspawner:policy` without any
//! trace of the Component Model, and what the service does with the answers.
//!
//! The form's types live in [`crate::form`] and the quota's in [`crate::quota`].

mod authorize;
mod check;
pub mod compose;
mod credential;
mod customization;
mod env;
mod error;
mod grants;
mod image;
mod init_container;
mod pair;
mod pod_patch;
mod request;
mod resources;
mod scheduling;
mod time_limits;
mod user;
mod volume;

pub use crate::field_error::FieldError;
pub use crate::grants::{Grant, GrantViolation, Grants};
pub use crate::options::{Options, Value};
pub use authorize::{Action, AuthorizeRequest, Verdict};
pub use check::check_customization;
pub use compose::{
    ChainAnswer, Provenance, RejectionBlame, SpawnInputs, SpawnRejected, ValidatedSpawn, compose,
};
pub use credential::is_credential;
pub use customization::Customization;
pub use env::{EnvValue, EnvVar, KeyRef};
pub use error::HookError;
pub use image::Image;
pub use init_container::{InitContainer, InitRun, SecurityProfile};
pub use pair::Pair;
pub use request::LabRequest;
pub use resources::{ResourceClaim, Resources};
pub use scheduling::{AffinityPreset, TaintEffect, Toleration, TolerationOperator};
pub use time_limits::TimeLimits;
pub use user::{Group, User};
pub use volume::{
    AccessMode, ClaimReclaim, ClaimSource, ClaimTemplate, EmptyDirSource, Mount, NfsSource, ObjectSource,
    Volume, VolumeSource,
};
