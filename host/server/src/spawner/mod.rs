//! The spawner: what is known of every lab, and the drivers that move them.
//!
//! Read it in this order: [`Labs`] (who asks finds a lab here), `driver` (one task owns one lab), `evaluate` (from a
//! request to objects, as a story), `errand` (what takes time), `service` (watching, recovering, reconciling).

mod dispatch;
mod driver;
mod errand;
mod errors;
mod evaluate;
mod history;
mod labs;
mod live_log;
mod message;
mod place;
mod policy_report;
mod preview;
mod provisioned;
mod reconcile;
mod record;
mod recovered;
mod rules;
mod service;
mod site;
mod snapshot;
mod tally;
mod turns;
mod view;
mod volumes;
mod world;

pub use errors::SpawnError;
pub use history::{History, HistoryError};
pub use labs::Labs;
pub use live_log::EventReader;
pub use policy_report::PolicyReport;
pub use preview::{Preview, preview};
pub use provisioned::Provisioned;
pub use rules::Rules;
pub use service::keep;
pub use site::Site;
pub use snapshot::{About, LabSnapshot, PolicyRef, Quotas, Share};
pub use volumes::Volumes;
