//! What can be done with objects, a file for each verb.

mod bind;
mod create;
mod delete;
mod log;
mod patch;
mod prepare;
mod read;
mod update;
mod watch;

pub(super) use bind::{bind, evict};
pub(super) use create::create;
pub(super) use delete::{delete, delete_collection};
pub(super) use log::log;
pub(super) use patch::patch;
pub(super) use prepare::prepare;
pub(super) use read::{get, list};
pub(super) use update::{Part, replace};
pub(super) use watch::{watch, watch_one};
