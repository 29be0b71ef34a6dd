//! Reads from container registries.

mod artifact;
mod connection;
mod credentials;
mod error;

pub use artifact::{Artifact, Artifacts};
pub use error::RegistryError;
