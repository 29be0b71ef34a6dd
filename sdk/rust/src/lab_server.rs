//! The port and the probe of the program in a lab's container.

pub use crate::bindings::lab_server::{Probe, Settings};

impl Default for Settings {
    /// Port and probe of the service's configuration.
    fn default() -> Self {
        Self { port: None, probe: None }
    }
}
