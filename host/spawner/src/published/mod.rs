//! The state of a lab as it is published outside of its driver.

pub(crate) mod live_log;
pub(crate) mod snapshot;
pub(crate) mod view;
