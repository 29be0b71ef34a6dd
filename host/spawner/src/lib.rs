//! The spawner: the state of every lab, and the drivers that change it.
//!
//! Read it in this order: [`Labs`] (finds the driver of a lab), `driver` (one task per lab: it writes an accepted
//! request into the lab's record, makes the requests that the plan asks for, and publishes what happens), `approve` and
//! `evaluate` (from a request to objects), `children` (what labs start: `kernels` and `pools`), `requests` (the tasks that talk to the
//! cluster), `recover` (from records to drivers, after a restart), `service` (the background tasks).

mod answer;
mod approve;
mod bind;
pub mod blueprint_providers;
mod blueprints;
mod certificate;
mod child_limits;
mod children;
mod clock;
pub mod config_part;
mod context;
mod denied_by;
mod details;
mod driver;
mod drivers;
mod env;
mod environments;
mod errors;
mod evaluate;
mod forgotten;
mod from_cluster;
mod hub_comparison;
mod image_menu;
mod kept;
mod kernel_links;
mod kernels;
mod lab_events;
mod lab_routes;
mod labs;
mod live_config;
mod live_log;
mod message;
mod permission;
mod place_observer;
mod pod_note;
mod pool_links;
mod pools;
pub mod prepull;
mod preview;
mod programs;
mod provisioned;
mod quota_claims;
mod recover;
mod registry;
mod reload;
mod requests;
mod rules;
mod running_lab;
mod service;
mod snapshot;
mod spawn_form;
mod sweep;
mod turn;
mod user_use;
mod view;
mod volumes;
mod workload_observer;
mod workload_requests;

pub use clock::Clock;
pub use context::Context;
pub use denied_by::DeniedBy;
pub use environments::EnvironmentsError;
pub use errors::SpawnError;
pub use forgotten::{ForgottenError, ForgottenReport};
pub use hub_comparison::HubComparison;
pub use image_menu::UserMenu;
pub use kernel_links::{LauncherAway, LauncherCommand};
pub use kernels::KernelSnapshot;
pub use labs::{LabChanges, Labs};
pub use live_config::LiveConfig;
pub use live_log::EventReader;
pub use pool_links::{NoOrders, PoolState, WorkerOrder};
pub use pools::PoolSnapshot;
pub use preview::{Preview, preview};
pub use provisioned::Provisioned;
pub use rules::SiteRules;
pub use service::run;
pub use snapshot::{LabDetails, LabSnapshot};
pub use sweep::{Orphan, OrphanKind};
pub use volumes::Volumes;

pub use wasmspawner_kubernetes::environments::TargetRefusal;
pub use wasmspawner_policies::{CandidateReport, DataReport, LastGoodReport, LoadedPolicy};
