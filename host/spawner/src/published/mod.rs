//! What is known of a lab outside of its driver.

pub(crate) mod live_log;
pub(crate) mod snapshot;
pub(crate) mod view;
