//! The spawner: the state of every lab, and the drivers that change it.
//!
//! Read it in this order: [`Labs`] (finds the driver of a lab), `driver` (one task per lab: it writes an accepted
//! request into the lab's record, makes the requests that the plan asks for, and publishes what happens), `decide`
//! (from a request to objects), `children` (what labs start: kernels and pools), `upkeep` (the background tasks).

pub mod blueprint_providers;
mod children;
pub mod config_part;
mod context;
mod decide;
mod driver;
mod errors;
mod labs;
pub mod prepull;
mod published;
mod upkeep;

pub use children::kernels::{KernelSnapshot, Kernels};
pub use children::pools::{PoolSnapshot, Pools};
pub use context::Context;
pub use context::clock::Clock;
pub use context::hub_comparison::HubComparison;
pub use context::live_config::LiveConfig;
pub use context::provisioned::Provisioned;
pub use context::site_rules::SiteRules;
pub use context::volumes::Volumes;
pub use decide::choices::Choices;
pub use decide::image_menu::UserMenu;
pub use decide::preview::{Preview, preview};
pub use errors::SpawnError;
pub use errors::denied_by::DeniedBy;
pub use labs::kernel_links::{LauncherAway, LauncherCommand};
pub use labs::pod_logs::{LogsError, ShownLog};
pub use labs::pool_links::{GroupOrder, GroupReport, GroupState, NoOrders, PoolState, WorkerOrder};
pub use labs::{LabChanges, Labs};
pub use published::live_log::EventReader;
pub use published::snapshot::{LabDetails, LabSnapshot};
pub use upkeep::environments::{EnvironmentsError, SiteEnvironments};
pub use upkeep::forgotten::{ForgottenError, ForgottenReport};
pub use upkeep::leftovers::Leftovers;
pub use upkeep::rules::Rules;
pub use upkeep::service::{prepare, run};
pub use upkeep::sweep::{Orphan, OrphanKind};

pub use wasmspawner_kubernetes::environments::TargetRefusal;
pub use wasmspawner_kubernetes::k8s::{LogError, LogQuery};
pub use wasmspawner_kubernetes::leadership::Standing;
pub use wasmspawner_policies::{CandidateReport, DataReport, LastGoodReport, LoadedPolicy};
