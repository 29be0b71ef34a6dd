//! Questions to a site's policies and their answers, as plain data, and how the service checks and merges the answers.
//! The types mirror the WIT package `wasmspawner:policy`, without its Component Model bindings.
//!
//! The types of the form are in [`crate::policy::form`], and those of quotas in [`crate::users::quota`].

pub mod form;
pub mod kept_request;
pub mod spawn;
pub mod usage;
pub mod user_string;

mod authorize;
mod chain_answer;
mod check;
pub mod compose;
mod credential;
mod customization;
mod denial;
mod env;
mod error;
mod grants;
mod image;
mod init_container;
mod lab_event;
mod lab_files;
mod lab_server;
mod lifted;
mod of_blueprint;
mod pair;
mod pod_patch;
mod pod_volume;
mod request;
mod resources;
mod scheduling;
mod subject;
mod time_limits;
mod user;
mod volume;
mod workload_access;

pub use crate::config::grants::{Grant, GrantViolation, Grants};
pub use crate::users::identity::Group;
pub use crate::values::field_error::FieldError;
pub use crate::values::options::{Options, Value};
pub use authorize::{Action, AuthorizeRequest, Verdict};
pub use chain_answer::{Author, ChainAnswer};
pub use check::{check_customization, check_lab_files, check_lab_server};
pub use compose::{
    ImageInputs, Provenance, RejectionBlame, SpawnInputs, SpawnRejected, ValidatedSpawn, compose,
};
pub use credential::is_credential;
pub use customization::Customization;
pub use denial::Denial;
pub use env::{EnvValue, EnvVar, KeyRef};
pub use error::HookError;
pub use image::Image;
pub use init_container::{InitContainer, InitRun, SecurityProfile};
pub use lab_event::{Happening, LabEvent};
pub use lab_files::TextFile;
pub use lab_server::{LabProbe, LabServer};
pub use lifted::Lifted;
pub use pair::Pair;
pub use request::LabRequest;
pub use resources::{ResourceClaim, Resources};
pub use scheduling::{AffinityPreset, TaintEffect, Toleration, TolerationOperator};
pub use subject::{PresentUse, Subject, SubjectBlueprint, SubjectChild};
pub use time_limits::TimeLimits;
pub use user::User;
pub use volume::{
    AccessMode, ClaimReclaim, ClaimSource, ClaimTemplate, EmptyDirSource, Mount, NfsSource, ObjectSource,
    Volume, VolumeSource,
};
pub use workload_access::{
    InjectRequest, InjectVerdict, SeenContainer, SeenVolume, SeenWorkload, VolumeAccess, WorkloadAccess,
};
