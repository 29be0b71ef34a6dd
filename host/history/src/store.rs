//! A place in which the history outlives the process: a file of this process, or NATS, which all processes share.

use std::sync::{Arc, mpsc};

use jiff::Timestamp;
use tokio::sync::watch;
use wasmspawner_core::names::Username;
use wasmspawner_core::policy::usage::DaysOfUser;

use super::entry::Shared;
use super::happening::Happening;

/// A change of the history.
pub(super) enum Write {
    /// The record has changed or was dropped. The store writes the state that the record has at the time of the write. What
    /// has happened in the operation is in that state, too.
    Changed(Arc<Shared>, Vec<Happening>),
    /// The use of a user; `None` if there is nothing left.
    Days(Username, Option<DaysOfUser>),
    /// The service is running at this time.
    Seen(Timestamp),
    /// Asks for a message once everything that was sent before is written.
    Flush(mpsc::SyncSender<()>),
}

/// How much of the store is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Knowledge {
    /// The store was not read yet.
    Nothing,
    /// Everything, and what others write a moment later.
    Follows,
    /// Everything that was written before this process began to lead. Nobody else writes.
    Complete,
}

/// Writes the history, and never makes the caller wait.
pub(super) trait Store: Send + Sync {
    /// Takes a change that is to be written soon.
    fn send(&self, write: Write);

    /// True while changes cannot be written.
    fn is_failing(&self) -> bool;

    /// The number of changes that were given up because too many waited.
    fn dropped(&self) -> u64 {
        0
    }

    /// Tells the store that this process leads, with the number of its leadership. Other processes only read.
    fn lead(&self, _number: u64) {}

    /// Follows how much of the store is in memory. `None` if everything is, and nobody else writes.
    fn knowledge(&self) -> Option<watch::Receiver<Knowledge>> {
        None
    }
}
