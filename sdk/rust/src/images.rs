//! The images from which users choose.

pub use crate::bindings::images::{Class, Entry, ImageMenu, Place, WantedImage};

impl Entry {
    /// An entry that the service shows at its usual place, and pins to the digest that it knows.
    pub fn new(name: impl Into<String>, reference: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reference: reference.into(),
            digest: None,
            label: label.into(),
            description: None,
            group: None,
            recommended: false,
            place: Place::Automatic,
        }
    }
}

impl WantedImage {
    /// An image that every node pulls.
    pub fn everywhere(reference: impl Into<String>) -> Self {
        Self { reference: reference.into(), node_selector: Vec::new() }
    }
}
