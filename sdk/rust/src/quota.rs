//! Limits on the resources of a user.

pub use crate::bindings::quota::{Quota, Usage};

impl Default for Quota {
    /// No limits.
    fn default() -> Self {
        Self {
            cpu_millis: None,
            memory_bytes: None,
            storage_bytes: None,
            pods: None,
            labs: None,
            extended: Vec::new(),
        }
    }
}
