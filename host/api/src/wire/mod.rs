//! The bodies of requests and answers. Nothing outside this crate uses these types, so that internal types can change
//! without changing the API.

mod blueprints;
mod dask_pool;
mod dask_pool_body;
mod environments;
mod event;
mod forgotten;
mod images;
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
mod retained;
mod spawn;
mod stage;
mod status;
mod volumes;

pub(crate) use blueprints::{Blueprint, BlueprintChoice, ResolvedBlueprint};
pub(crate) use dask_pool::{DaskPool, ScaledPool, SchedulerReport, parse_report};
pub(crate) use dask_pool_body::{DaskPoolBody, ParsedPool, WorkersBody, parse_pool, parse_workers};
pub(crate) use environments::Environments;
pub(crate) use event::StreamEvent;
pub(crate) use forgotten::ForgottenLabs;
pub(crate) use images::{ImageMenu, KnownImages};
pub(crate) use kernel::{Kernel, Process, Signal, parse_process, parse_signal};
pub(crate) use kernel_body::{KernelBody, ParsedKernel, parse_kernel};
pub(crate) use lab::Lab;
pub(crate) use lab_lookup::LabLookup;
pub(crate) use lab_status::LabStatusReport;
pub(crate) use operation::Operation;
pub(crate) use orphan::Orphan;
pub(crate) use policy::Policy;
pub(crate) use prepulls::Prepulls;
pub(crate) use reloaded_config::ReloadedConfig;
pub(crate) use retained::RetainedObject;
pub(crate) use spawn::{ParsedSpawn, SpawnBody, parse_spawn};
pub(crate) use stage::StageReport;
pub(crate) use status::StatusFilter;
pub(crate) use volumes::{ReleasedVolumes, Volumes};
