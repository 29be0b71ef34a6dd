//! The progress of an operation as users see it: messages, a percentage, and the numbered log of both.

mod entry;
mod event_id;
mod log;
mod percent;

pub use entry::{Entry, StageReport};
pub use event_id::EventId;
pub use log::{LoggedEntry, ProgressLog};
pub use percent::percent;
