//! The bodies of requests and answers. Nothing outside `http` uses these types, so that internal types can change
//! without changing the API.

mod blueprints;
mod dask_pool;
mod dask_pool_body;
mod environments;
mod event;
mod forgotten;
mod images;
mod kept;
mod kernel;
mod kernel_body;
mod lab;
mod lab_lookup;
mod lab_status;
mod operation;
mod orphan;
mod policy;
mod prepulls;
mod reloaded_config;
mod spawn;
mod stage;
mod status;
mod volumes;

pub(super) use blueprints::{Blueprint, BlueprintChoice, ResolvedBlueprint};
pub(super) use dask_pool::{DaskPool, ScaledPool, SchedulerReport, parse_report};
pub(super) use dask_pool_body::{DaskPoolBody, ParsedPool, WorkersBody, parse_pool, parse_workers};
pub(super) use environments::Environments;
pub(super) use event::StreamEvent;
pub(super) use forgotten::ForgottenLabs;
pub(super) use images::{ImageMenu, KnownImages};
pub(super) use kept::KeptObject;
pub(super) use kernel::{Kernel, Process, Signal, parse_process, parse_signal};
pub(super) use kernel_body::{KernelBody, ParsedKernel, parse_kernel};
pub(super) use lab::Lab;
pub(super) use lab_lookup::LabLookup;
pub(super) use lab_status::LabStatusReport;
pub(super) use operation::Operation;
pub(super) use orphan::Orphan;
pub(super) use policy::Policy;
pub(super) use prepulls::Prepulls;
pub(super) use reloaded_config::ReloadedConfig;
pub(super) use spawn::{ParsedSpawn, SpawnBody, parse_spawn};
pub(super) use stage::StageReport;
pub(super) use status::StatusFilter;
pub(super) use volumes::{ReleasedVolumes, Volumes};
